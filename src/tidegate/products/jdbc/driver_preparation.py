"""The drivers of this process, and the jars that a source gets before it is opened."""

from __future__ import annotations

from tidegate.gateway.handlers import HandlerParts
from tidegate.model.sources import Source
from tidegate.products.jdbc.engine.driver_jars import JdbcDrivers, known_libraries
from tidegate.products.jdbc.maven.driver_cache import DriverCache, Report
from tidegate.products.jdbc.settings import DriverSettings

_KEPT = "jdbc.drivers"


def drivers_of(parts: HandlerParts) -> JdbcDrivers:
    """The drivers of this process."""
    found = parts.kept.get(_KEPT)
    if not isinstance(found, JdbcDrivers):
        directory = parts.directory / "drivers"
        settings = parts.config.section(DriverSettings)
        found = JdbcDrivers(DriverCache(directory, settings, known_libraries()))
        parts.kept[_KEPT] = found
    return found


async def prepare(parts: HandlerParts, source: Source, report: Report | None = None) -> Source:
    """The source with the jars of its driver. Raises: as `JdbcDrivers.locate`."""
    return await drivers_of(parts).locate(source, report)
