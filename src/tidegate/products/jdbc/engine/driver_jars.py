"""The jars of a source's driver: files that its options name, or libraries of the cache.

`JdbcDrivers.locate` runs before a source is opened, where the cache of this process is known.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.products.jdbc.engine.known_databases import KNOWN_DATABASES
from tidegate.products.jdbc.engine.url import JdbcUrl, coordinate_of
from tidegate.products.jdbc.maven.coordinates import Coordinate, parse_coordinate, parse_coordinates
from tidegate.products.jdbc.maven.driver_cache import DriverCache, Report

COORDINATE = "driver_coordinate"
REPOSITORY = "driver_repository"
PATH = "driver_path"
DOWNLOADS = 4
"""Downloads that may be under way; one at a time writes into the cache."""


def known_libraries() -> frozenset[tuple[str, str]]:
    """(group, artifact) of the drivers of `products.py`, which need no consent."""
    return frozenset(
        [
            parse_coordinate(coordinate)[:2]
            for product in KNOWN_DATABASES.values()
            for coordinate in (product.coordinate, product.server_coordinate)
            if coordinate
        ]
    )


def named_coordinates(text: str) -> tuple[Coordinate, ...]:
    """The coordinates in a text: `g:a:v`, several with commas between them, or the name of a
    database such as `h2`, which means the coordinate that is known of its driver.

    Raises: TidegateError ARGUMENT_INVALID.
    """
    for product in KNOWN_DATABASES.values():
        if text.lower() == product.name and product.coordinate:
            return (parse_coordinate(product.coordinate),)
    return parse_coordinates(text)


class JdbcDrivers:
    """Finds the drivers of sources in the cache, and downloads those that the settings allow."""

    def __init__(self, cache: DriverCache) -> None:
        self.cache = cache
        # Of its own: a repository that says nothing must not keep threads that others need.
        self._downloads = ThreadPoolExecutor(DOWNLOADS, "tidegate-drivers")

    async def locate(self, source: Source, report: Report | None = None) -> Source:
        """The source with the jars of its driver as its option `driver_path`. Another than a JDBC
        source stays as it is. `report` gets each library that is downloaded, on the event loop.

        The option `driver_coordinate` names them; a source that names nothing gets the driver of
        its database that was fetched last.
        Raises: TidegateError ARGUMENT_INVALID, and as `DriverCache.jars`.
        """
        if source.engine != "jdbc":
            return source
        options = dict(source.options)
        asked = options.pop(COORDINATE, "")
        repository = options.pop(REPOSITORY, None)
        path = options.get(PATH, "")
        if asked:
            jars = await self._jars(parse_coordinates(asked), repository, report)
        elif not path:
            jars = await self._fetched(coordinate_of(source.url))
        else:
            return source
        if not jars:
            return source
        parts = [*map(str, jars), *([path] if path else [])]
        options[PATH] = os.pathsep.join(parts)
        return structs.replace(source, options=tuple(options.items()))

    async def _fetched(self, known: str) -> list[Path]:
        """The driver that is known of a database, if it was fetched. Raises: TidegateError."""
        if not known:
            return []
        group, artifact, _ = parse_coordinate(known)
        found = await asyncio.to_thread(self.cache.find_version, group, artifact)
        return found or []

    async def _jars(
        self,
        coordinates: tuple[Coordinate, ...],
        repository: str | None,
        report: Report | None,
    ) -> list[Path]:
        """Raises: TidegateError."""
        found = await asyncio.to_thread(self.cache.find, coordinates)
        if found is not None:
            return found
        stopped = threading.Event()
        loop = asyncio.get_running_loop()

        def tell(library: str) -> None:
            if report is not None:
                loop.call_soon_threadsafe(report, library)

        try:
            return await loop.run_in_executor(
                self._downloads,
                partial(self.cache.jars, coordinates, repository, stop=stopped.is_set, report=tell),
            )
        except asyncio.CancelledError:
            stopped.set()
            raise


def find_jars(options: Mapping[str, str], url: JdbcUrl) -> list[str]:
    """The absolute paths of the driver's jars: the files and folders of the option `driver_path`.

    Raises: TidegateError ENGINE_MISSING if none is named, or one is not there.
    """
    named = options.get(PATH)
    if not named:
        raise TidegateError(
            Code.ENGINE_MISSING,
            f"Driver not found: no jar of a JDBC driver for {url.product.title} is named.",
            hint=_how_to_get(url),
        )
    jars: list[str] = []
    for part in named.split(os.pathsep):
        path = expand(part).absolute()
        found = sorted(path.glob("*.jar")) if path.is_dir() else [path]
        if not found or not all(map(Path.is_file, found)):
            raise TidegateError(
                Code.ENGINE_MISSING,
                f"Driver not found: there is no jar at {path}.",
                hint="Correct the source's option `driver_path`.",
                details={"path": str(path)},
            )
        jars += [str(each) for each in found]
    return jars


def _how_to_get(url: JdbcUrl) -> str:
    """How to get a driver of the database."""
    known = coordinate_of(url.text)
    if not known:
        fetch = "give the source the coordinate of its driver with `--driver-coordinate`"
    else:
        by_name = known == url.product.coordinate
        fetch = f"run `tidegate driver fetch {url.product.name if by_name else known}`"
    return f"Either {fetch}, or name its jar with the source's option `driver_path`."
