"""The package's section of the settings."""

from __future__ import annotations

from typing import ClassVar

from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sections import Section


class LedgerSettings(Section, frozen=True, forbid_unknown_fields=True):
    """What ledgers hold: `currency` is the three letters of ISO 4217."""

    NAME: ClassVar[str] = "ledger"

    currency: str = ""

    def check(self, config: Config) -> None:
        """Raises: TidegateError CONFIG_INVALID."""
        if self.currency and not (self.currency.isupper() and len(self.currency) == 3):
            raise invalid(
                f"`ledger.currency` is `{self.currency[:20]}`, which is no currency.",
                hint="Write the three letters of ISO 4217, such as EUR.",
            )
