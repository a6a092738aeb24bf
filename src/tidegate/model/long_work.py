"""What takes long whatever a text says, and may not be done on an event loop."""

from __future__ import annotations

from contextvars import ContextVar

may_take_long: ContextVar[bool] = ContextVar("may_take_long", default=True)
"""Whether work may be done that takes long whatever the text, such as importing a parser."""


class TakesLong(Exception):
    """What was asked needs more time than `may_take_long` gives: ask again where there is more."""
