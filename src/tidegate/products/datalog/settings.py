"""The section `datalog` of the settings: which databases callers may open by directory or URI."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.config.sources import check_directories


class OpeningSettings(Section, frozen=True, forbid_unknown_fields=True):
    """What `datalevin_open_database` and `datalevin_open_kv` of the surface `datalog` may open.

    Without `directories` and `hosts` a client on stdio may open what the user who started it can
    reach, and one over HTTP what those of `temporary_sources` list. With `changes` a token that may
    write may change what it opens over HTTP; on stdio `--allow-writes` decides. With
    `private_copy_mb` a directory that a caller may only read is read from a private copy of at most
    so many megabytes, and not a byte of it changes.
    """

    NAME: ClassVar[str] = "datalog"

    directories: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    changes: bool = False
    private_copy_mb: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def check(self, config: Config) -> None:
        check_directories("datalog.directories", self.directories or ())
