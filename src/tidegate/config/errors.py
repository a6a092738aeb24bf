"""What is wrong with a setting."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.secrets.redaction import mask_addresses


def invalid(message: str, hint: str | None = None) -> TidegateError:
    """A setting that cannot be used. Of a URL that the message quotes it shows neither a login nor
    a query: they may hold a secret, and errors are logged."""
    return TidegateError(Code.CONFIG_INVALID, mask_addresses(message), hint=hint)
