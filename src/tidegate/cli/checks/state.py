"""Checks of the state directory: rights, the database and its lock, the record, and the server that
runs on it."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import apsw

from tidegate import __version__
from tidegate.app import App
from tidegate.audit.verify import Report, verify
from tidegate.bridge.discovery import Discovery
from tidegate.bridge.handshake_file import HandshakeFile
from tidegate.cli.checks.finding import Finding, failed, fault, note, ok
from tidegate.cli.running_server import status_of
from tidegate.config.file_permissions import require_private_file
from tidegate.config.system_keyring import SERVICE
from tidegate.config.webhook import WebhookSettings
from tidegate.errors import TidegateError
from tidegate.serve.running_servers import RunningServer, RunningServers
from tidegate.store.passwords import Passwords
from tidegate.system.file_rights import is_open_to_others

_PRIVATE = ("state.db", "operator.json", "mask.key", "audit-key/signing.key")
_LOCK_WAIT_MS = 2_000
_MOST_FAULTS = 3


def check_directory(directory: Path, agents: Collection[str]) -> Iterator[Finding]:
    """The rights of the directory and of what it holds; `agents` are the accounts of agents.
    `config.state` has checked the owner."""
    try:
        require_private_file(directory, agents)
    except TidegateError as error:
        yield (fault if agents else note)("state", error.message, error.hint)
    private = [directory / name for name in _PRIVATE]
    for folder in ("passwords", "bridge"):
        private += [directory / folder, *(directory / folder).glob("*")]
    opened = [path for path in private if path.exists() and is_open_to_others(path.stat())]
    for path in opened[:_MOST_FAULTS]:
        text = f"other accounts may read or write `{path}`"
        yield fault("state", text, f"chmod go-rwx {path}")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield fault("state", f"`{directory}` cannot be written", f"chmod u+rwx {directory}")
    elif not opened:
        yield ok("state", f"{directory}, for this account alone to write")


def check_database(directory: Path) -> Iterator[Finding]:
    """The state database: whole, and not locked by a process that hangs."""
    path = directory / "state.db"
    if not path.exists():
        yield ok("database", "there is none yet; the first command that needs it makes it")
        return
    if not os.access(path, os.W_OK):
        to_do = "Mount its disk for writing, or make it this account's"
        yield fault("database", f"{path} can be read only: nothing can be recorded", to_do)
        return
    try:
        connection = apsw.Connection(os.fspath(path), apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(_LOCK_WAIT_MS)
            verdict: str = connection.execute("PRAGMA quick_check(1)").get
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        finally:
            connection.close()
    except apsw.BusyError:
        yield fault(
            "database",
            f"another process has locked {path} for more than {_LOCK_WAIT_MS // 1_000} s",
            f"Find it with `fuser {path}`, and end it",
        )
        return
    except apsw.Error as error:
        yield fault("database", f"{path}: {error}", "Restore it from a backup")
        return
    if verdict != "ok":
        yield fault("database", f"{path} is damaged: {verdict}", "Restore it from a backup")
        return
    yield ok("database", "it is whole, and not locked")


def check_shared_database(url: str) -> Iterator[Finding]:
    """The PostgreSQL database of the state: whether it answers, and keeps what is written."""
    try:
        from tidegate.store.moving import name_of  # needs an extra
        from tidegate.store.postgres.health import read_health
    except ImportError:
        return  # the check of extras says so

    health = read_health(url)
    for concern in health.concerns:
        yield note("database", concern, "Set synchronous_standby_names in its settings")
    tables = f"tables of version {health.tables}" if health.tables else "no tables yet"
    yield ok("database", f"{name_of(url)}, server {health.server}, {tables}")


def check_unrecorded(app: App) -> Iterator[Finding]:
    """Events that the audit log could not take when they happened."""
    kept = app.state.shared.unrecorded()
    if kept:
        text = f"{len(kept)} events wait for the audit log to be writable"
        yield note("record", text, "Start a server: it records them")


def check_passwords(app: App) -> Iterator[Finding]:
    """Passwords that no source uses: a command that was killed may leave one."""
    sources = app.connections.sources()
    texts = [text for each in sources for text in (each.url, *dict(each.options).values())]
    for path, entry in Passwords(app.directory).unused([each.name for each in sources], texts):
        to_do = f"rm {path}"
        if entry:
            to_do = f"Remove `{entry}` of `{SERVICE}` from the keyring, then: {to_do}"
        yield note("password", f"no source uses the password in {path}", to_do)


async def check_record(directory: Path, patience_s: float) -> list[Finding]:
    """The chain of the audit log, as `tidegate audit verify` checks it."""
    if not (directory / "audit").is_dir():
        return [ok("record", "there is none yet")]
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Report | TidegateError] = loop.create_future()

    def deliver(result: Report | TidegateError) -> None:
        if not outcome.done():
            outcome.set_result(result)

    def work() -> None:
        try:
            result: Report | TidegateError = verify(directory / "audit", directory / "audit-key")
        except TidegateError as error:
            result = error
        loop.call_soon_threadsafe(deliver, result)

    # A thread of its own, which is abandoned if the log is long.
    threading.Thread(target=work, name="verify", daemon=True).start()
    try:
        report = await asyncio.wait_for(outcome, patience_s)
    except TimeoutError:
        return [
            note("record", f"it was not verified within {patience_s:g} s",
                 "tidegate audit verify"),
        ]  # fmt: skip
    if isinstance(report, TidegateError):
        return [failed("record", report)]
    if report.intact:
        lines = "1 line" if report.lines == 1 else f"{report.lines:,} lines"
        said = f"{lines} verify, {report.checkpoints} signed checkpoints"
        if report.unchecked:
            unchecked = "; ".join(report.unchecked)
            return [note("record", f"{said}; not checked: {unchecked}", "tidegate audit verify")]
        return [ok("record", said)]
    first = report.faults[0]
    return [
        fault(
            "record",
            f"{len(report.faults)} places were changed, the first in {first.segment} line "
            f"{first.line}: {first.reason}",
            "tidegate audit verify",
        )
    ]


async def check_server(directory: Path) -> list[Finding]:
    """The server on HTTP that bridges of this state use, and every other one."""
    discovery = Discovery(HandshakeFile(directory), ())
    try:
        found = await discovery.look()
    except TidegateError as error:
        return [failed("server", error)]
    others = [
        each for each in RunningServers(directory).read() if found is None or each.pid != found.pid
    ]
    notes = [_check_other(each) for each in others]
    if found is None:
        return notes or [ok("server", "none runs; a client's bridge starts one when it needs it")]
    status = await status_of(found)
    findings = [
        fault("server", f"process {found.pid}: {reason}", "tidegate status")
        for reason in dict.fromkeys(status.get("failing", {}).values())
    ]
    if not found.is_of(__version__, os.environ):
        differs = (
            "other values of the variables that sources name"
            if found.release == __version__
            else f"version {found.release}, not {__version__}"
        )
        findings.append(
            note("server", f"process {found.pid} has {differs}", f"tidegate stop {found.pid}")
        )
    where = f"process {found.pid} at {found.address.url}"
    return [*(findings or [ok("server", f"{where}, version {found.release}")]), *notes]


def _check_other(server: RunningServer) -> Finding:
    text = f"process {server.pid} at {server.place}, version {server.release}"
    if server.release == __version__:
        return ok("server", text)
    return note("server", f"{text}, not {__version__}", f"tidegate stop {server.pid}")


def check_webhook(settings: WebhookSettings | None) -> Iterator[Finding]:
    """The webhook of the settings: whether it has its URL and can sign. Sends nothing."""
    if settings is None:
        return
    from tidegate.webhook.credentials import read_secret, read_url

    try:
        _, parts = read_url(settings)
        if not settings.is_chat:
            read_secret(settings.secret)
    except TidegateError as error:
        yield failed("webhook", error)
        return
    can = f"it has its URL at {parts.origin}" if settings.is_chat else "it can sign"
    yield ok("webhook", f"{can}; `tidegate webhook test` sends a message")
