"""How the edges of one process start together, run, and stop.

Signals: after SIGTERM `/ready` answers 503, and callers are served for `drain_delay_s` seconds, in
which balancers see that. Then, and at once after SIGINT, no more callers are accepted, and running
calls get `stop_grace_s` seconds to finish before they are cancelled. A second signal cancels them
at once. SIGHUP reads the settings again. The stop is recorded in every case. The service
manager that started the process gets a report when it serves, reads its settings again, and stops.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.app import App
from tidegate.audit.chain_uses import SEEN
from tidegate.audit.seen_gates import SeenGates
from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.errors import TidegateError
from tidegate.identity.revocation import Blindness, RevocationWatcher
from tidegate.product import found_already, load
from tidegate.serve.running_servers import RunningServers
from tidegate.service import Service
from tidegate.store.calls import change_state, read_state
from tidegate.store.carried import MOST_SWEPT
from tidegate.system.processes import forget_notices, on_notice
from tidegate.system.service_manager import ServiceManager

if TYPE_CHECKING:
    from tidegate.serve.worker import Worker

logger = logging.getLogger("tidegate.serve")

CHECK_S = 1.0
"""How often the server checks whether it can do its work, for its log."""
LOG_S = 60.0
"""How long after a line about what fails comes the line that it works again, so that what comes and
goes does not fill the log."""
FORGET_S = 300.0
"""Between two searches for changes that must be forgotten."""
LOOK_FOR_GATES_S = 10.0
"""Between two looks for other gates on the state."""
ALLOCATOR_S = 1.0
"""How long after the start the allocator is set: the first answer does not wait for it."""
LAST_WORK_S = 30.0
"""What a stop may take beside the times in the settings: sessions, sources and the state close."""
_MAPPED_BYTES = 33_554_432
_FREE_BYTES = 67_108_864
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as in malloc.h


class Shutdown:
    """How far a server must stop: `stop` ends it in good order, `hurry` at once. `drains`: first
    balancers get time to see it."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self.drains = False

    def ask(self, *, drain: bool = False) -> None:
        """Ask it to stop; asked again, to hurry."""
        if self.stop.is_set():
            self.hurry.set()
        else:
            self.drains = drain
        self.stop.set()


async def serve(
    app: App,
    edges: Sequence[Edge],
    shutdown: Shutdown,
    ready: Callable[[], Awaitable[None] | None] | None = None,
    prepare: Callable[[Shutdown], Awaitable[None]] | None = None,
) -> None:
    """Run these edges until `shutdown` asks for a stop or each of them has ended, then close the
    application. `prepare` is awaited before any of them does; `ready` is called when all of them
    accept callers.

    An edge that ends, such as stdio at the end of its input, does not stop the others. Raises:
    TidegateError if an edge cannot start or the start cannot be recorded.
    """
    versions = app.state.versions
    watcher = RevocationWatcher(
        app.tokens,
        [edge.sessions for edge in edges],
        app.state.now,
        follow_sources=app.gateway.follow_sources,
        blindness=Blindness(
            lambda: versions.age_s, app.config.state_grace_s, app.gateway.end_calls
        ),
    )
    tasks: list[asyncio.Task[None]] = []
    recorded, entered = False, ExitStack()
    try:
        await asyncio.to_thread(_begin, app, " ".join(edge.name for edge in edges))
        recorded = True
        app.token_files.load()
        if prepare is not None:
            await prepare(shutdown)
        for edge in edges:
            await edge.start()
        tasks += [_task(watcher.run()), _task(_log_readiness(app)), _task(_forget_in_time(app))]
        tasks += [_task(app.webhook.run()), _task(app.mailbox.run())]
        if app.lease is not None and app.siblings.share.number <= 1:
            tasks.append(_task(_note_gates(app, app.lease.id)))
        app.services += _services_of(app)
        for service in app.services:
            service.start()
        if not app.siblings.are_there:  # the parent has one entry for all of them
            names = [edge.name for edge in edges]
            enter = RunningServers(app.directory).enter
            entered.enter_context(
                enter(names, served_surfaces(app.config), time.time(), app.console_address)
            )
        if ready is not None and (telling := ready()) is not None:
            await telling
        await asyncio.gather(*(_run_edge(app, edge, shutdown) for edge in edges))
    finally:
        try:
            await asyncio.gather(*(edge.stop(0) for edge in edges))
        finally:
            for task in tasks:
                task.cancel()
            if recorded:
                app.server_audit.record_stop()
            await asyncio.gather(*(asyncio.to_thread(each.stop) for each in app.services))
            await app.siblings.say_last()
            await app.close()
            entered.close()


def _begin(app: App, edges: str) -> None:
    """Follow the state, and record the start. Raises: TidegateError."""
    app.state.versions.follow()
    with suppress(TidegateError):  # a state that cannot be written is reported elsewhere
        app.granted_rights.note()
        app.shared_sessions.read_key()
    app.server_audit.record_start(app.config, edges)


def served_surfaces(config: Config) -> tuple[str, ...]:
    """The surfaces that a server's entry names."""
    return tuple(config.surfaces) or ("core",)


def _services_of(app: App) -> list[Service]:
    """What the settings have the server run beside its edges. Raises: TidegateError."""
    makers: list[Callable[[App], Service | None]] = [
        load(each.service)
        for each in found_already()
        if each.service and each.settings.keys() & app.config.sections.keys()
    ]
    return [service for make in makers if (service := make(app)) is not None]


async def _run_edge(app: App, edge: Edge, shutdown: Shutdown) -> None:
    ended, stopped = _task(edge.wait_ended()), _task(_until(shutdown.stop))
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    stopped.cancel()
    app.readiness.stopping = shutdown.stop.is_set()
    delay_s = app.config.drain_delay_s
    if shutdown.drains and edge.listens and delay_s:
        logger.warning("%s: stops in %g s; /ready answers 503 meanwhile", edge.name, delay_s)
        with suppress(TimeoutError):
            await asyncio.wait_for(shutdown.hurry.wait(), delay_s)
    await edge.stop(app.config.stop_grace_s, shutdown.hurry)


async def _log_readiness(app: App) -> None:
    """Log what begins to fail and what works again: for each part one line a minute at most."""
    reported: dict[str, float] = {}
    while True:
        now = asyncio.get_running_loop().time()
        reasons = app.readiness.reasons()
        if reasons:
            await app.readiness.tried()  # or what was tried once would fail for ever
            reasons = app.readiness.reasons()
        reasons.pop("server", None)  # that it stops has a line of its own
        failing = {**app.conditions.degraded(), **reasons}
        for part, reason in failing.items():
            if part not in reported:
                logger.error("%s: fails: %s", part, reason)
                reported[part] = now
        for part, at in list(reported.items()):
            if part not in failing and now >= at + LOG_S:
                logger.warning("%s: works again", part)
                del reported[part]
        await asyncio.sleep(CHECK_S)


async def _forget_in_time(app: App) -> None:
    while True:
        await asyncio.sleep(FORGET_S)
        await forget_ended(app)


async def forget_ended(app: App) -> None:
    """Remove what is over, also while no call is about such things: changes with their keys, and
    what later calls might have needed. Never raises TidegateError."""
    with suppress(TidegateError):  # the state cannot be written: the next time
        await change_state(app.undo_log.forget_old)
        while await change_state(app.state.carried.sweep, app.state.now()) >= MOST_SWEPT:
            """A few at a time, so that no one waits for all."""


async def _note_gates(app: App, own: str) -> None:
    """Record where the records of other gates end, so that one that is gone is missed even if the
    state knows it no more."""
    record = partial(app.server_audit.record_done_as, SEEN, "server")
    seen = SeenGates(own, app.state.gates, record)
    while True:
        with suppress(TidegateError):  # the state cannot be read: the next time
            await read_state(seen.look, time.monotonic())
        await asyncio.sleep(LOOK_FOR_GATES_S)


def keep_freed_memory() -> bool:
    """Have the C library keep what large answers free, up to `_FREE_BYTES`: to give it back and ask
    for it again takes an eighth of their time. Returns whether it can; only glibc does."""
    import ctypes  # imported lazily, since the first answer does not need it

    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    set_option = library.mallopt
    return bool(
        set_option(_M_MMAP_THRESHOLD, _MAPPED_BYTES) and set_option(_M_TRIM_THRESHOLD, _FREE_BYTES)
    )


async def _tell_readiness(app: App) -> bytes:
    """For the parent of workers: by part of the server, the code of what keeps it from its work."""
    failing = await app.readiness.tried()
    return msgspec.json.encode({part: error.code.value for part, error in failing.items()})


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


async def _until(event: asyncio.Event) -> None:
    await event.wait()


def run(
    app: App,
    open_edges: Callable[[Shutdown], Sequence[Edge]],
    *,
    fast: bool,
    ready: Callable[[Sequence[Edge]], None] | None = None,
    reread: Callable[[], None] | None = None,
    prepare: Callable[[Shutdown], Awaitable[None]] | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve in this process until a signal or the end of every edge. `fast` uses uvloop, where
    there is one. `reread` is called on SIGHUP, `prepare` before the first caller is answered.
    A `worker` also ends when its parent does, which says when `ready` is called.
    Raises: TidegateError as `serve`."""
    manager = ServiceManager.of_process()
    stop_s = app.config.stop_grace_s + LAST_WORK_S

    async def main() -> None:
        shutdown = Shutdown()

        def end() -> None:
            manager.report_stopping(app.config.drain_delay_s + stop_s)
            shutdown.ask(drain=True)

        def interrupt() -> None:
            manager.report_stopping(stop_s)
            shutdown.ask()

        def read_again() -> None:
            with manager.reloading():
                (reread or _no_settings_file)()

        on_notice({"end": end, "interrupt": interrupt, "reread": read_again})
        loop = asyncio.get_running_loop()
        edges = open_edges(shutdown)
        # What is loaded now stays: the garbage collector need not scan it for every caller.
        gc.freeze()
        loop.call_later(ALLOCATOR_S, keep_freed_memory)

        def announce() -> None:
            try:
                if ready is not None:
                    ready(edges)
            except OSError as error:  # the first clients have taken all that it needed
                logger.error("where it serves cannot be printed whole: %s", error.strerror)
            manager.report_ready()

        async def report() -> None:
            if worker is None:
                await asyncio.to_thread(announce)  # it may read the state
            else:
                names = [edge.name for edge in edges if edge.listens]
                worker.report_ready(names, app.console_address, announce)

        try:
            if worker is not None:
                await worker.follow(on_parent_gone=shutdown.ask)
                app.siblings.answers["ready"] = partial(_tell_readiness, app)
            await serve(app, edges, shutdown, report, prepare)
        finally:
            # What comes now must not kill a process that has ended in good order.
            forget_notices("end", "interrupt", "reread", ignore=True)

    if fast:
        try:
            import uvloop
        except ImportError:
            pass
        else:
            uvloop.run(main())
            return
    asyncio.run(main())


def _no_settings_file() -> None:
    logger.warning("SIGHUP: there is no settings file to read again")
