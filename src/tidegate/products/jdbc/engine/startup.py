"""Starts the Java processes of sources, with their drivers loaded.

A source has a process of its own. Those whose option `process` has the same value share one, if
their jars and the options of Java are the same: that is how the connections of one caller of the
surface `jdbc` live in one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.driver_jars import find_jars
from tidegate.products.jdbc.engine.errors import ended_connecting, unconnected
from tidegate.products.jdbc.engine.jvm.process import JvmError, JvmProcess
from tidegate.products.jdbc.engine.jvm.runtime import Runtime, find_runtime
from tidegate.products.jdbc.engine.messages import Loaded, fields
from tidegate.products.jdbc.engine.url import JdbcUrl

HEAP = "256m"


class _Kind(NamedTuple):
    """What two sources must have in common to share a process."""

    loop: asyncio.AbstractEventLoop
    name: str
    jars: tuple[str, ...]
    runtime: Runtime
    heap: str
    time_zone: str
    options: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]


class _SharedProcess:
    """A process and how many sources use it; it ends with the last of them."""

    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        self.users = 0
        self.process: JvmProcess | None = None
        self._starting = asyncio.Lock()

    @property
    def usable(self) -> bool:
        """Whether it lives, or is yet to be started."""
        return self.process is None or self.process.check()

    async def started(self) -> JvmProcess:
        """The process. Raises: TidegateError SOURCE_UNREACHABLE."""
        async with self._starting:
            if self.process is None:
                kind = self.kind
                self.process = await JvmProcess.start(
                    kind.runtime, kind.heap, kind.time_zone, kind.options, dict(kind.variables)
                )
            return self.process

    async def leave(self) -> None:
        """One source needs it no more."""
        self.users -= 1
        if self.users:
            return
        if _shared.get(self.kind) is self:
            del _shared[self.kind]
        if self.process is not None:
            self.process.close()
            await self.process.closed()


_shared: dict[_Kind, _SharedProcess] = {}
"""The processes that have a name."""


class Worker:
    """A Java process as one source has it, with the driver that was loaded for it."""

    def __init__(self, shared: _SharedProcess, process: JvmProcess, loaded: Loaded) -> None:
        self._shared: _SharedProcess | None = shared
        self.process = process
        self.loaded = loaded

    async def leave(self) -> None:
        """Give the process up, which ends unless another source has it. Safe to call twice."""
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.leave()


async def start_worker(options: Mapping[str, str], url: JdbcUrl) -> Worker:
    """A Java process for the source, with its driver loaded. Nothing is connected yet.

    Raises: TidegateError ENGINE_MISSING without Java or a driver, CONFIG_INVALID for a variable
    that is not set, SOURCE_UNREACHABLE if the process does not start.
    """
    jars = find_jars(options, url)
    runtime = await asyncio.to_thread(find_runtime, options.get("java"))
    shared = _process_of(
        _Kind(
            asyncio.get_running_loop(),
            options.get("process", ""),
            tuple(jars),
            runtime,
            options.get("heap", HEAP),
            options.get("time_zone", "UTC"),
            tuple(options.get("jvm_options", "").split()),
            _variables(options.get("variables", "")),
        )
    )
    shared.users += 1
    try:
        process = await shared.started()
        body = fields(
            jars=jars,
            url=url.text,
            driver=options.get("driver"),
            usual=url.product.driver or None,
        )
        return Worker(shared, process, await process.set_up(body, Loaded))
    except BaseException as error:
        await shared.leave()
        if isinstance(error, JvmError):
            raise unconnected(error.fault) from error
        if isinstance(error, TidegateError):
            raise ended_connecting(error) from error
        raise


def _variables(names: str) -> tuple[tuple[str, str], ...]:
    """The variables of our environment with these names, which have commas between them. Raises:
    TidegateError CONFIG_INVALID."""
    found: list[tuple[str, str]] = []
    for name in filter(None, map(str.strip, names.split(","))):
        value = os.environ.get(name)
        if value is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The source's option `variables` names {name[:80]}, which is not set.",
                hint="Set it where the server starts, or take it out of the option.",
            )
        found.append((name, value))
    return tuple(sorted(found))


def _process_of(kind: _Kind) -> _SharedProcess:
    """The process that sources of this kind share; a new one if there is none that lives, and for
    a source that shares with no other."""
    found = _shared.get(kind)
    if found is None or not found.usable:
        found = _SharedProcess(kind)
        if kind.name:
            _shared[kind] = found
    return found
