"""The phrase with which a caller confirms what cannot be undone. A person must approve it as
well."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError

PHRASE = "I understand this is irreversible"


def check_phrase(given: str, argument: str) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless `argument` holds the exact phrase."""
    if given != PHRASE:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"invalid confirmation: {argument} must be exactly: {PHRASE}"
        )
