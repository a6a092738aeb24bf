"""Sections of the settings that products own: each a struct that its product names in
`Product.settings`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    from tidegate.config.model import Config


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one product. `NAME` is the name of the table in the settings file."""

    NAME: ClassVar[str] = ""

    @property
    def listen_address(self) -> str | None:
        """HOST:PORT at which it has the server listen, if it does."""
        return None

    @property
    def listens(self) -> bool:
        """Whether it has the server listen at an address."""
        return self.listen_address is not None

    @property
    def needed_extra(self) -> str | None:
        """The optional dependency without which a server with these settings does not start."""
        return None

    def check(self, config: Config) -> None:
        """See that the section fits the other settings. Raises: TidegateError CONFIG_INVALID."""

    def check_files(self, config: Config) -> None:
        """Read the files that it names. Raises: TidegateError CONFIG_INVALID."""

    def secret_addresses(self) -> Iterable[str]:
        """The settings that hold an address of which each part may be a secret: they are read from
        files alone, since every account of the machine sees the words that a process was started
        with."""
        return ()

    def source_names(self) -> Iterable[tuple[str, str]]:
        """The settings that are about a source by its name: (setting, name of the source)."""
        return ()


SectionT = TypeVar("SectionT", bound=Section)


class SectionSettings(Protocol):
    """Settings of which a section can be read: `config.model.Config`."""

    def section(self, kind: type[SectionT]) -> SectionT:
        """The section of this kind; its defaults if the settings have none."""
        ...
