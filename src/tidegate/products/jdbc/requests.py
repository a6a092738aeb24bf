"""The requests of JDBC to the gate. `sources` has their handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tidegate.model.replies import RecordedPayload
from tidegate.model.requests import OpenTemporary
from tidegate.model.sources import Source


class OpenJdbc(OpenTemporary, frozen=True, kw_only=True):
    """Open the database of a JDBC URL as a temporary source, and connect to it.

    Each field but `name` may be `${NAME}` or `env:NAME`, whole, for an environment variable of the
    server whose name the settings allow. `dependency` (group:artifact:version) and `repository` say
    where the driver is. The answer is a `OpenedJdbc`.
    """

    handler: ClassVar[str] = "tidegate.products.jdbc.sources:make_handler"
    reports_progress: ClassVar[bool] = True

    user: str | None = None
    password: str | None = None
    driver: str | None = None
    dependency: str | None = None
    repository: str | None = None


class OpenedJdbc(RecordedPayload, frozen=True):
    """A temporary source of a JDBC URL. `driver` is the class that the URL is made for,
    `dependency` where it came from if it was fetched. `native`: an engine of ours serves it,
    without that driver. `redact` takes what came from the environment out of a text; `place` is
    where the database is, for the records. `process` is the id of the Java process that the driver
    runs in, which other connections of the caller may share; empty where there is none. `note` says
    why another driver than the one that was asked for is used."""

    source: Source
    driver: str
    native: bool
    dependency: str | None
    redact: Callable[[str], str]
    place: str
    process: str = ""
    note: str = ""

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"place": self.place, "driver": self.driver}
