"""What a result says in addition to its rows, briefly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidegate.model.results import Page

_MOST = 4
_NOTHING = re.compile(rb'\[\[(?:"?0"?|null)(?:,(?:"?0"?|null))*\]\]')
"""The one row of counts and sums of nothing."""


def masking_note(masked: Sequence[tuple[str, str]]) -> str:
    """That masked columns, as (table, column), were read: not their values, anywhere."""
    names = [f"{table}.{column}" for table, column in masked[:_MOST]]
    if len(masked) > _MOST:
        names.append(f"{len(masked) - _MOST} more")
    verb = "is" if len(masked) == 1 else "are"
    return f"{', '.join(names)} {verb} masked: conditions and counts use the mask, not the value"


def may_be_mistaken(page: Page, text: str) -> bool:
    """Whether a note could help: the statement found nothing, and compares with a text or is one of
    Datalog, where a misspelt attribute is no error; a pull shows no more than nulls for it."""
    datalog = text.lstrip()[:1] in ("[", "{")
    return (datalog and "(pull" in text) or ((datalog or "'" in text) and found_nothing(page))


def found_nothing(page: Page) -> bool:
    """Whether no row met the conditions: there is none, or one of counts and sums of nothing."""
    if not page.columns or page.affected:
        return False
    return not page.row_count or (page.row_count == 1 and bool(_NOTHING.fullmatch(page.rows)))
