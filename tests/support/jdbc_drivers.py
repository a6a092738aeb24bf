"""JDBC drivers of Debian's packages, and databases in files that only Java has.

A database is made once by a JVM of its own, and copied for each test: H2, HSQLDB and Derby let one
process at a time open a database, which is the engine's.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.other_loop import run_in_thread
from tidegate.errors import TidegateError

if TYPE_CHECKING:  # many cases of the kernel's suites are in reach of this module
    from tidegate.products.jdbc.engine.jvm.process import JvmProcess

JARS = Path("/usr/share/java")
QUICK = "-XX:TieredStopAtLevel=1"
"""A JVM for a short life compiles little."""
TRUSTING = f"{QUICK} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""The options of a JVM that does not verify its driver's classes either: it starts in two thirds of
the time."""

DRIVERS = {
    "h2": ("libh2-java", ["h2.jar"]),
    "hsqldb": ("libhsqldb-java", ["hsqldb.jar"]),
    "derby": ("libderby-java", ["derby.jar"]),
    "postgresql": ("libpostgresql-jdbc-java", ["postgresql.jar"]),
    "mariadb": ("libmariadb-java", ["mariadb-java-client.jar"]),
    "sqlite": ("libxerial-sqlite-jdbc-java", ["sqlite-jdbc.jar"]),
}
"""The package of each driver, and its jars."""

SQLITE_LIBRARY = "/usr/lib/x86_64-linux-gnu/jni"
"""Where Debian puts SQLite's library for Java (the package libxerial-sqlite-jdbc-jni)."""

USERS = {"h2": "", "hsqldb": "SA", "derby": "APP"}
"""The accounts that new databases have; they need no password."""

SYSTEM = ["INFORMATION_SCHEMA", "SYSTEM_LOBS", "SYS", "SYSIBM"]


def jars_of(product: str) -> str:
    """The jars of a driver. The test that asks is skipped by name where they are not installed."""
    package, names = DRIVERS[product]
    jars = [JARS / name for name in names]
    if not all(jar.is_file() for jar in jars):
        pytest.skip(f"needs the JDBC driver of {product} (the package {package})")
    return os.pathsep.join(map(str, jars))


def driver_path(product: str) -> str:
    """The jars of a driver that the gate is to load; as `jars_of` where it cannot."""
    from tidegate.products.jdbc.engine.jvm.runtime import JAR, find_runtime

    jars = jars_of(product)
    if not JAR.is_file():
        pytest.skip("needs a Java compiler (the package default-jdk-headless)")
    try:
        find_runtime()
    except TidegateError as error:
        pytest.skip(error.message)
    return jars


@functools.cache
def template(product: str, script: tuple[str, ...]) -> Path:
    """A folder with a database `shop` in which `script` was run; it is only copied."""
    folder = Path(tempfile.mkdtemp(prefix=f"tidegate-{product}-"))
    run_in_thread(_make(product, folder, script))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def url_of(product: str, folder: Path) -> str:
    """The URL of the database `shop` in a folder."""
    return {
        "h2": f"jdbc:h2:{folder}/shop",
        "hsqldb": f"jdbc:hsqldb:file:{folder}/shop",
        "derby": f"jdbc:derby:{folder}/shop",
    }[product]


def new_database(product: str, directory: Path, script: tuple[str, ...]) -> str:
    """The URL of a database of its own for one test."""
    driver_path(product)
    folder = directory / product
    shutil.copytree(template(product, script), folder)
    return url_of(product, folder)


async def digest(process: JvmProcess, url: str, properties: dict[str, str]) -> str:
    """Of all tables and rows of a database, as a further connection of the process sees them."""
    import hashlib

    from tidegate.products.jdbc.engine.messages import TableFacts

    channel = process.new_channel()
    await process.ask(channel, "connect", {"url": url, "properties": properties}, dict)
    body = {"keys": True, "system_schemas": SYSTEM}
    tables = await process.ask(channel, "catalog", body, list[TableFacts])
    found: list[Any] = [tables]
    for table in tables:
        if table.kind in ("TABLE", "BASE TABLE"):
            text = f'SELECT * FROM "{table.schema}"."{table.name}"'
            found.append(sorted(await _ask(process, channel, text), key=repr))
    await process.ask(channel, "disconnect", None, type(None))
    return hashlib.sha256(repr(found).encode()).hexdigest()


async def _ask(process: JvmProcess, channel: int, text: str) -> list[Any]:
    from tidegate.products.jdbc.engine.messages import Portion, Started
    from tidegate.products.jdbc.engine.types import rows_of

    started = await process.ask(channel, "run", {"text": text}, Started)
    rows = rows_of(started.portion, started.columns)
    ended = started.portion.ended
    while not ended:
        portion = await process.ask(channel, "fetch", {"rows": 10_000}, Portion)
        rows += rows_of(portion, started.columns)
        ended = portion.ended
    return rows


async def _make(product: str, folder: Path, script: tuple[str, ...]) -> None:
    from tidegate.products.jdbc.engine.jvm.process import JvmError, JvmProcess
    from tidegate.products.jdbc.engine.jvm.runtime import find_runtime
    from tidegate.products.jdbc.engine.messages import Loaded, Started

    process = await JvmProcess.start(find_runtime(), "128m", "UTC", tuple(TRUSTING.split()))
    try:
        jars = driver_path(product).split(os.pathsep)
        url = url_of(product, folder)
        await process.set_up({"jars": jars, "url": url}, Loaded)
        channel = process.new_channel()
        properties = {"user": USERS[product], "password": ""}
        created = f"{url};create=true" if product == "derby" else url
        await process.ask(channel, "connect", {"url": created, "properties": properties}, dict)
        for text in script:
            await process.ask(channel, "run", {"text": text, "writes": True}, Started)
        if product == "hsqldb":
            await process.ask(channel, "run", {"text": "SHUTDOWN", "writes": True}, Started)
        await process.ask(channel, "disconnect", None, type(None))
        if product == "derby":
            try:  # Derby reports the end of a database as an error
                await process.ask(channel, "connect", {"url": f"{url};shutdown=true"}, dict)
            except JvmError as error:
                assert error.fault.state == "08006"
    finally:
        process.close()
        await process.closed()
