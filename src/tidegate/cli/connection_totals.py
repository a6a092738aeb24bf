"""How many connections all processes on a state may open to each database, beside what its server
admits. For `tidegate config check`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from tidegate.audit.shipped import find_gate_id
from tidegate.config.model import Config
from tidegate.config.state import state_path, state_url
from tidegate.engines.api import LimitedEngine
from tidegate.engines.registry import find, open_engine, pool_of
from tidegate.errors import TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.sources import Source
from tidegate.model.worker_share import WorkerShare
from tidegate.secrets.readers import use_settings
from tidegate.store.opening import read_gates, read_sources

_PATIENCE_S = 5.0


def connection_totals(config: Config) -> Iterator[str]:
    """A line for each source that several processes share, and one for the state; where gates share
    that, a note on each source which is a file of this machine. Only then is a
    source of the settings asked for its server's limit; a saved one may be a row that no gate has
    written, and is not opened. What cannot be found out is said in the line."""
    url = state_url(config.state_url)
    if config.workers == 1 and url is None:
        return
    gates, processes, why = (1, config.workers, "") if url is None else _live_gates(config, url)
    use_settings(config.sections)
    for settings in config.sources:
        source = source_from_settings(settings)
        yield from _source_total(source, config.workers, gates, partial(_limit_of, source))
        if url is not None:
            yield from _file_note(source)
    named = {settings.name for settings in config.sources}
    try:
        saved = read_sources(url, state_path(config.state))
    except TidegateError as error:
        saved, why = (), why or error.message
    for source in saved:
        if source.name not in named:
            yield from _source_total(source, config.workers, gates, lambda: None)
            if url is not None:
                yield from _file_note(source)
    if url is not None:
        yield from _state_total(url, gates, processes)
    if why:
        yield f"note: what the state has of gates and saved sources is not known: {why}"


def _live_gates(config: Config, url: str) -> tuple[int, int, str]:
    """How many gates serve on the state with this one, and in how many processes; why it is not
    known of others."""
    try:
        own = find_gate_id(state_path(config.state) / "audit")
        gates, now = read_gates(url)
    except TidegateError as error:
        return 1, config.workers, error.message
    except (OSError, UnicodeDecodeError) as error:
        return 1, config.workers, str(error)
    others = [
        each.processes
        for each in gates
        if each.id != own and each.processes and each.expires_at > now
    ]
    return 1 + len(others), config.workers + sum(others), ""


def _source_total(
    source: Source, workers: int, gates: int, limit: Callable[[], int | TidegateError | None]
) -> Iterator[str]:
    total = pool_of(source)
    if total is None:
        return
    parts = {WorkerShare(n, workers).of(total) for n in (1, workers)}
    shown = " or ".join(str(part) for part in sorted(parts))
    each = "1 worker" if workers == 1 else f"{workers} workers"
    line = f"source {source.name}: {each} x {shown} = {total} connections for each gate"
    if gates > 1:
        line += f"; {gates} gates: {total * gates}"
    yield f"{line}; {_beside(limit(), total * gates)}"


def _file_note(source: Source) -> Iterator[str]:
    try:
        path = find(source.url).path_of(source.url)
    except TidegateError as error:
        yield f"note: source {source.name} cannot be opened at this machine: {error.message}"
        return
    if path is not None:
        yield (
            f"note: source {source.name} is {path} of this machine, and each gate opens what is"
            " there on its own"
        )


def _limit_of(source: Source) -> int | TidegateError | None:
    """How many connections the source's server admits; None if its engine cannot say, or an error
    that kept us from asking."""
    try:
        if not find(source.url).tells_limit:
            return None
        return asyncio.run(asyncio.wait_for(_ask_limit(source), _PATIENCE_S))
    except TidegateError as error:
        return error
    except TimeoutError:
        return None


async def _ask_limit(source: Source) -> int | None:
    engine = await open_engine(source)
    try:
        if isinstance(engine, LimitedEngine):
            return await engine.read_connection_limit()
        return None
    finally:
        await engine.close()


def _state_total(url: str, gates: int, processes: int) -> Iterator[str]:
    from tidegate.store.postgres.database import MOST_CONNECTIONS
    from tidegate.store.postgres.health import read_connection_limit

    total = processes * MOST_CONNECTIONS
    limit: int | TidegateError
    try:
        limit = read_connection_limit(url)
    except TidegateError as error:
        limit = error
    line = f"state: {processes} processes x {MOST_CONNECTIONS} = {total} connections"
    yield f"{line} ({gates} gates); {_beside(limit, total)}"


def _beside(limit: int | TidegateError | None, total: int) -> str:
    if isinstance(limit, TidegateError):
        return f"what its server admits cannot be read: {limit.message}"
    if limit is None:
        return "see that its server admits as many"
    if total > limit:
        return f"MORE than its server admits, {limit}: lower `pool`, or raise `max_connections`"
    return f"its server admits {limit}"
