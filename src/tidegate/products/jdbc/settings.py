"""The settings of downloads of Java drivers."""

from __future__ import annotations

from typing import ClassVar, Literal

from tidegate.config.addresses import check_private_url
from tidegate.config.errors import invalid
from tidegate.config.sections import Section
from tidegate.secrets.references import READ_ANYWHERE, check_references


class DriverSettings(Section, frozen=True, forbid_unknown_fields=True):
    """Where JDBC drivers are downloaded from, and which without asking a person.

    `download`: `known` drivers are those that Tidegate has a coordinate of, in any version; `any`
    downloads whatever a source names; `none` downloads only what a person fetches with
    `tidegate driver fetch`. `repository` is the address of a Maven repository. Without it the
    mirror in Maven's `~/.m2/settings.xml` is used, else the repository of an installed Maven.
    `user` and `password` are for `repository`, as references to secrets. `ca_file` has
    certificate authorities that are trusted for downloads in addition. `allow_unchecked` takes
    files for which the repository gives no checksum.
    """

    NAME: ClassVar[str] = "drivers"

    download: Literal["none", "known", "any"] = "known"
    repository: str | None = None
    user: str | None = None
    password: str | None = None
    ca_file: str | None = None
    allow_unchecked: bool = False

    def __post_init__(self) -> None:
        if self.repository is not None:
            check_private_url(self.repository, "drivers.repository")
        if self.user is not None and self.repository is None:
            raise invalid(
                "`drivers.user` is an account at `drivers.repository`, which is not set.",
                hint="Set it, or give the account in Maven's settings.xml.",
            )
        for value in (self.user, self.password):
            check_references(value or "", READ_ANYWHERE)
        if self.password is not None and not self.password.startswith("${"):
            raise invalid(
                "`drivers.password` holds the password itself.",
                hint="Write `${ENV:NAME}` or `${FILE:/path}` in its place.",
            )


class OpeningSettings(Section, frozen=True, forbid_unknown_fields=True):
    """What the tool `connect` of the surface `jdbc` may open beside what `temporary_sources` lists.

    `stdio_hosts` are hosts for a client on stdio: the user who starts that server can reach their
    own machine without it. `environment` are patterns of environment variables that a call may
    name; without it `DB_*` and `JDBC_*` on stdio, and none over HTTP. A URL that comes from a
    variable need not be on the lists. `driver_path` are the jars, or a folder of jars, of the
    drivers for databases that need one.
    """

    NAME: ClassVar[str] = "jdbc"

    stdio_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "::1")
    environment: tuple[str, ...] | None = None
    driver_path: str = ""
