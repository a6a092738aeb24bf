"""`tidegate doctor`: checks everything that can be wrong, and says one thing to do about each.

Nothing is changed, but that sources are opened through the gate, which records it, and that the
entries of clients are started and ended.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tidegate.app import App
from tidegate.cli.checks.clients import check_clients
from tidegate.cli.checks.finding import Finding, failed, fault, note, ok
from tidegate.cli.checks.machine import (
    check_clock,
    check_disk,
    check_extras,
    check_python,
    check_terminal,
)
from tidegate.cli.checks.report import FAULTY, Report
from tidegate.cli.checks.sources import check_settings, needed_extras, start_checks
from tidegate.cli.checks.state import (
    check_database,
    check_directory,
    check_passwords,
    check_record,
    check_server,
    check_shared_database,
    check_unrecorded,
    check_webhook,
)
from tidegate.cli.checks.unused_settings import unused_tags
from tidegate.cli.entry_extras import check_entries
from tidegate.config.model import Config
from tidegate.config.state import state_directory, state_key, state_path, state_url
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.readers import use_settings
from tidegate.store.opening import check_state

_CLOSE_S = 5.0


def run(arguments: argparse.Namespace) -> int:
    """Check and show. Returns 1 if there is a fault."""
    # What is logged of sources is shown as findings.
    logging.getLogger("tidegate").setLevel(logging.CRITICAL)
    report = Report(as_json=arguments.json)
    asyncio.run(check(arguments, report))
    report.end()
    return FAULTY if report.faults else 0


async def check(arguments: argparse.Namespace, report: Report) -> None:
    """Check everything. Raises: OSError of the report; what the checks have started is ended."""
    report.add(_safe("python", check_python))
    config, findings = check_settings(arguments)
    report.add(findings)
    use_settings(config.sections)
    webhook = partial(check_webhook, config.approvals.webhook)
    report.add(await asyncio.to_thread(_safe, "webhook", webhook))
    directory = _directory(config, report)
    place = directory or state_path(config.state)
    if directory is not None:
        agents = config.agent_accounts
        report.add(_safe("state", partial(check_directory, directory, agents)))
    refused = _safe("state", partial(_check_state, config, place))
    report.add(refused)
    if directory is not None or _is_elsewhere(config):
        report.add(_safe("database", partial(_check_database, config, place)))
    if directory is not None:
        report.add(await _awaited("server", check_server(directory)))
    # After the server's check: a client's bridge starts one.
    clients = asyncio.create_task(_awaited("clients", check_clients(place, arguments.timeout)))
    record = asyncio.create_task(_awaited("record", _record(directory, arguments.timeout)))
    try:
        await _check_sources(arguments, config, report, can_open=not refused)
        report.add(await record)
        report.add(await clients)
    finally:
        # Also if no one reads the report any more. What an entry has started is ended; and asyncio
        # waits for ever for a process whose start is cancelled.
        await asyncio.wait((record, clients))
    report.add(_safe("disk", partial(check_disk, _nearest(place))))
    report.add(_safe("clock", partial(check_clock, directory)))
    report.add(_safe("terminal", check_terminal))


def _safe(check: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a check found; one that fails itself is a fault, and the others go on."""
    try:
        return list(look())
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the report is wanted
        return [_broken(check, error)]


async def _awaited(check: str, look: Awaitable[list[Finding]]) -> list[Finding]:
    """As `_safe`, for a check that waits."""
    try:
        return await look
    except Exception as error:  # noqa: BLE001 - as above
        return [_broken(check, error)]


def _broken(check: str, error: Exception) -> Finding:
    if isinstance(error, TidegateError):
        return failed(check, error)
    text = f"it could not be checked: {type(error).__name__}: {error}"
    return fault(check, text, "Report this, with the output of `tidegate version`")


def _check_state(config: Config, place: Path) -> Iterable[Finding]:
    """Whether a server could use the state. Raises: TidegateError if it could not."""
    database = state_url(config.state_url)
    check_state(database, place, state_key(config.state_key, database))
    return ()


def _is_elsewhere(config: Config) -> bool:
    """Whether the state is in a database, as far as that can be read."""
    with suppress(TidegateError):
        return state_url(config.state_url) is not None
    return False


def _check_database(config: Config, directory: Path) -> Iterable[Finding]:
    database = state_url(config.state_url)
    return check_database(directory) if database is None else check_shared_database(database)


def _directory(config: Config, report: Report) -> Path | None:
    """The state directory, None if it cannot be used or nothing has needed it yet."""
    path = state_path(config.state)
    if not path.exists() and not config.sources:
        report.add([ok("state", f"{path} is not there; the first command that needs it makes it")])
        return None
    try:
        return state_directory(config.state)
    except TidegateError as error:
        report.add([failed("state", error)])
        return None


async def _record(directory: Path | None, patience_s: float) -> list[Finding]:
    return [] if directory is None else await check_record(directory, patience_s)


async def _check_sources(
    arguments: argparse.Namespace, config: Config, report: Report, *, can_open: bool
) -> None:
    """Every source at the same time, and what they need. Without the state only those of the
    settings are known, and none is opened."""
    sources: tuple[Source, ...] = ()
    if not can_open:
        text = "they were not checked, since the state cannot be opened"
        report.add([note("sources", text, "Put the state right, then run `tidegate doctor` again")])
    elif state_path(config.state).exists():
        try:
            sources = await _check_each(App.open(config), arguments, report)
        except TidegateError as error:
            part = "state" if error.code is Code.STATE_FAILED else "sources"
            report.add([failed(part, error)])
    needed = needed_extras(config, sources)
    report.add(_safe("extras", partial(check_extras, needed)))
    report.add(_safe("entries", partial(check_entries, config, sources)))


async def _check_each(
    app: App, arguments: argparse.Namespace, report: Report
) -> tuple[Source, ...]:
    """Returns the sources. Raises: TidegateError if they cannot be read."""
    try:
        sources = app.connections.sources()
        for name in sorted({*arguments.source} - {source.name for source in sources}):
            report.add([fault(f"source {name}", "there is no such source", "tidegate source list")])
        report.add(_safe("settings", partial(unused_tags, app.config, sources)))
        report.add(_safe("record", partial(check_unrecorded, app)))
        report.add(_safe("password", partial(check_passwords, app)))
        chosen = [each for each in sources if not arguments.source or each.name in arguments.source]
        for source, task in start_checks(app, chosen, arguments.timeout):
            report.add(await _awaited(f"source {source.name}", task))
        return sources
    finally:
        with suppress(TimeoutError):
            await asyncio.wait_for(app.close(), _CLOSE_S)


def _nearest(path: Path) -> Path:
    """The directory, or the nearest one above it that is there."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
