"""What is wrong with a setting."""

from __future__ import annotations

from tidegate.errors import Code, GateError


def invalid(message: str, hint: str | None = None) -> GateError:
    """A setting that cannot be used."""
    return GateError(Code.CONFIG_INVALID, message, hint=hint)
