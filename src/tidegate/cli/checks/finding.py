"""What a check of `tidegate doctor` found: one line, and one thing to do if something is wrong."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tidegate.config.installation import as_typed
from tidegate.errors import TidegateError
from tidegate.secrets.redaction import mask_shapes

State = Literal["ok", "note", "fault"]


class Finding(NamedTuple):
    """`check` is what was checked, such as `python` or `source shop`. A `fault` keeps something
    from working; a `note` does not. `to_do` is empty if nothing must be done."""

    check: str
    state: State
    text: str
    to_do: str = ""


def ok(check: str, text: str) -> Finding:
    """It is as it should be."""
    return Finding(check, "ok", _line(text))


def note(check: str, text: str, to_do: str = "") -> Finding:
    """It works, and you may want to know or to change something."""
    return Finding(check, "note", _line(text), _line(to_do))


def fault(check: str, text: str, to_do: str) -> Finding:
    """It does not work."""
    return Finding(check, "fault", _line(text), _line(to_do))


def failed(check: str, error: TidegateError) -> Finding:
    """A fault as its error says it."""
    return fault(check, error.message, error.hint)


def _line(text: str) -> str:
    """On one line, without the point at its end, and without what has the shape of a secret; its
    commands are as they are typed here."""
    return as_typed(mask_shapes(" ".join(text.split()).removesuffix(".")))
