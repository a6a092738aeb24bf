"""What a result says in addition to its rows, briefly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidegate.model.results import Page, SkippedCall, Truncation

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


def filter_note(filtered: Sequence[str]) -> str:
    """That a row filter may hide rows of tables; empty if there are none."""
    if not filtered:
        return ""
    names = [*filtered[:_MOST]]
    if len(filtered) > _MOST:
        names.append(f"{len(filtered) - _MOST} more")
    return f"a row filter of the source may hide rows of {', '.join(names)}"


def partial_note(skipped: Sequence[SkippedCall]) -> str:
    """That rows of accounts or regions are not there, and of which."""
    shown = [
        f"{each.resource}"
        f"{f' of the account {each.account}' if each.account else ''}"
        f"{f' in {each.region}' if each.region else ''}"
        f" ({f'HTTP {each.http_status}' if each.http_status else each.error})"
        for each in skipped
    ]
    return (
        f"Partial: denied and left out were {', '.join(shown)}. Counts, sums and other aggregates"
        " are of the rest alone"
    )


def cut_note(page: Page) -> str:
    """Where the rows end though there were more; empty if they are whole."""
    rows = f"{page.row_count:,} row{'s' * (page.row_count != 1)}"
    said = {
        "rows": "cut after {rows}, the limit: there are more",
        "bytes": "cut after {rows}, as more would take too many bytes: there are more",
        "value": "values are cut at {limit:,} bytes",
        "budget": "cut after {rows}, as the budget has no more: there may be more",
    }
    return "; ".join(
        [
            pages_note(cut)
            if cut.kind == "pages"
            else said[cut.kind].format(rows=rows, limit=cut.limit)
            for cut in page.truncations
        ]
    )


def pages_note(cut: Truncation) -> str:
    """That a provider's list has more pages than were read."""
    pages = f"{cut.returned:,} pages" if cut.returned != 1 else "page"
    return f"made of the first {pages} of a provider's list: there are more"


def page_note(page: Page) -> str:
    """What a reader of a result must know of what it is not; empty if there is nothing."""
    notes = [masking_note(page.masked)] if page.masked else []
    if page.upstream is not None and page.upstream.skipped:
        notes.append(partial_note(page.upstream.skipped))
    if page.budget:
        notes.append(page.budget)
    return "; ".join(notes)


def page_notes(page: Page) -> list[str]:
    """The same for people, with the row filters that may hide rows from them."""
    return [note for note in (filter_note(page.filtered), page_note(page)) if note]


def found_nothing(page: Page) -> bool:
    """Whether no row met the conditions: there is none, or one of counts and sums of nothing."""
    if not page.columns or page.affected:
        return False
    return not page.row_count or (page.row_count == 1 and bool(_NOTHING.fullmatch(page.rows)))
