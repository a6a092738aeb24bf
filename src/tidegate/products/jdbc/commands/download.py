"""Downloads JDBC drivers for the local operator, who agrees where the settings do not."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.terminal import print_status
from tidegate.config.kept_secrets import secrets_of
from tidegate.products.jdbc.driver_preparation import drivers_of
from tidegate.products.jdbc.maven.coordinates import Coordinate
from tidegate.products.jdbc.maven.driver_cache import key_of
from tidegate.products.jdbc.maven.lock_file import LockedDriver
from tidegate.products.jdbc.settings import DriverSettings


async def fetch_driver(
    app: App,
    coordinates: Sequence[Coordinate],
    arguments: argparse.Namespace,
    repository: str | None = None,
) -> None:
    """Download a driver that is not there, once a person agrees or the settings do.

    Raises: TidegateError OPERATOR_CONSENT, SECRET_UNAVAILABLE, and as `DriverCache.fetch`.
    """
    settings = app.config.section(DriverSettings)
    async with secrets_of(settings.user or "", settings.password or ""):
        _fetch(app, coordinates, arguments, repository)


def _fetch(
    app: App,
    coordinates: Sequence[Coordinate],
    arguments: argparse.Namespace,
    repository: str | None,
) -> None:
    cache = drivers_of(app.parts).cache
    asked = key_of(coordinates)
    if cache.has(coordinates):
        print_status(f"{asked} is there")
        return
    place = repository or cache.repository()
    if not cache.may_download(coordinates, elsewhere=repository is not None):
        what = f"download {asked} from {place}; its code will run in Java processes"
        require_consent(app, "fetch", what, arguments, no_word=not app.granted_rights.exist)
    app.note("driver.fetched", {"driver": asked, "repository": place})
    driver = cache.fetch(coordinates, repository, report=_print_step)
    pins = cache.lock().files
    size = sum(pins[jar.path].size for jar in driver.jars)
    print_status(f"fetched {asked}: {_jars(driver)}, {size:,} bytes, from {driver.repository}")
    for text in driver.left_out:
        print_status(f"left out: {text}")
    for text in driver.warnings:
        print_status(f"warning: {text}")


def _print_step(library: str) -> None:
    print_status(f"downloading {library}")


def _jars(driver: LockedDriver) -> str:
    count = len(driver.jars)
    return f"{count} jar{'' if count == 1 else 's'}"
