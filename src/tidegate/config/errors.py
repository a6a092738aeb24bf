"""What is wrong with a setting."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError


def invalid(message: str, hint: str | None = None) -> TidegateError:
    """A setting that cannot be used."""
    return TidegateError(Code.CONFIG_INVALID, message, hint=hint)
