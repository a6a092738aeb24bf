"""A statement with its plain values made alike, so that what differs in values only is judged once.

Nothing in judging looks at the value of a number or of a string that is compared with: the
property test `tests/properties/sql/test_template.py` holds that. Texts with anything that could
make it uncertain where a literal ends (comments, brackets, dollar quotes, backslashes) stay as
they are. What stands in double quotes or backticks is left alone: a database that knows no such
quote refuses the sign.
"""

from __future__ import annotations

import re

_UNCERTAIN = re.compile(r"[\[\\#@]|\$(?!\d)|--|/\*|[^\t\n\r\x20-\x7e]")
_LITERAL = re.compile(
    r"(?P<compared>(?:[=<>]|\blike\b)\s*)?'(?:[^']|'')*'|\b\d+(?P<fraction>\.\d+)?\b"
    r"|\"[^\"]*\"|`[^`]*`|\$\d+",
    re.IGNORECASE,
)


def template(text: str) -> str:
    """The text with numbers and compared strings replaced by fixed ones; or the text itself."""
    if _UNCERTAIN.search(text):
        return text
    return _LITERAL.sub(_alike, text)


def _alike(literal: re.Match[str]) -> str:
    whole = literal[0]
    if whole[0] in '"`$':
        return whole
    if whole[-1] != "'":
        return "7.5" if literal["fraction"] else "7"
    compared = literal["compared"]
    return whole if compared is None else f"{compared}'x'"
