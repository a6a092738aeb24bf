"""Checks of the entries for Tidegate in clients' settings: each is started as a client on a desktop
starts it, with an almost empty environment in the root directory.

A bridge starts a server where none runs; such a server is ended again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

from tidegate import __version__
from tidegate.bridge.discovery import Discovery
from tidegate.bridge.handshake_file import HandshakeFile, ServerAddress
from tidegate.bridge.http_client import WireError, send_request
from tidegate.cli.checks.finding import Finding, failed, fault, note, ok
from tidegate.cli.client_entries import address_of, token_variables_of, variables_of, words_of
from tidegate.cli.client_settings_file import ClientSettingsFile
from tidegate.cli.entry_editing import entries_of
from tidegate.cli.running_server import has_ended_on
from tidegate.cli.supported_clients import CLIENTS, SCOPES, Client, Scope, settings_file
from tidegate.config.addresses import is_this_machine, parse_http_url
from tidegate.config.loading import load
from tidegate.config.state import is_database, state_path
from tidegate.errors import TidegateError
from tidegate.paths import home_directory
from tidegate.secrets.redaction import redact

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tidegate-doctor", "version": __version__},
    },
}
_END_S = 5.0
_MOST_REASON = 300


class Installed(NamedTuple):
    """An entry for Tidegate in a client's settings file."""

    label: str
    client: Client
    file: Path
    name: str
    fields: dict[str, Any]
    scope: Scope

    @property
    def words(self) -> list[str]:
        """The command, empty for a server on HTTP."""
        return [] if self.address else words_of(self.client, self.fields)

    @property
    def address(self) -> str:
        """The address of the server, empty for a command that serves by itself."""
        return address_of(self.client, self.fields)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the entry, with references to those of this process filled in."""
        return variables_of(self.client, self.fields)

    @property
    def state(self) -> Path:
        """The state directory that it works on."""
        for option, word in pairwise(self.words):
            if option == "--state" and not is_database(word):
                return Path(word)
        if named := self.variables.get("TIDEGATE_STATE"):
            return Path(named)
        return state_path(_state_of(dict(pairwise(self.words)).get("--config")))


def _state_of(settings: str | None) -> str | None:
    """The state directory that settings name. None without one, and for those that are of no use:
    the entry does not start then, which another line says."""
    try:
        return load(settings).state if settings else None
    except TidegateError:
        return None


async def check_clients(state: Path, patience_s: float) -> list[Finding]:
    """Every entry in the settings of this user and of the project in this directory."""
    findings: list[Finding] = []
    entries = list(installed_entries(findings))
    stdio = [entry for entry in entries if entry.words]
    running = {entry.state: _running(entry.state) for entry in stdio}
    checks = [
        _check_program(entry, patience_s) if entry.words else _check_address(entry, patience_s)
        for entry in entries
    ]
    findings += await asyncio.gather(*checks)
    for place, instance in running.items():
        await _end_started(place, instance)
    for entry in stdio:
        if not is_same_place(entry.state, state):
            text = f"{entry.file} uses the state directory {entry.state}, and this command {state}"
            findings.append(note(entry.label, text, f"Name it with --state {entry.state}"))
    if not findings:
        return [note("clients", "no client has an entry", "tidegate install CLIENT")]
    return findings


def is_same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file or folder."""
    return os.path.realpath(one) == os.path.realpath(other)


def installed_entries(findings: list[Finding]) -> Iterator[Installed]:
    """The entries. What cannot be read goes to `findings`."""
    for client in CLIENTS.values():
        seen: set[str] = set()
        for scope in SCOPES:
            try:
                path = settings_file(client, scope)
                where = os.path.realpath(path)
                if where in seen or not path.is_file():  # in the home directory both are one file
                    continue
                seen.add(where)
                entries = entries_of(ClientSettingsFile(path), client)
            except TidegateError as error:
                if "per project" not in error.message:
                    findings.append(failed(f"client {client.name}", error))
                continue
            except OSError as error:  # a directory that may not be looked into
                text = f"{error.filename}: {error.strerror}"
                findings.append(note(f"client {client.name}", text))
                continue
            for name, fields in entries.items():
                if not isinstance(fields, dict):
                    continue
                known = cast("dict[str, Any]", fields)
                if _is_ours(name, words_of(client, known)):
                    yield Installed(f"client {client.name}", client, path, name, known, scope)


def _is_ours(name: str, words: list[str]) -> bool:
    named = any(re.split(r"[/\\]", word)[-1].startswith("tidegate") for word in words)
    return name == "tidegate" or named


async def _check_program(entry: Installed, patience_s: float) -> Finding:
    """Start it, say hello, and see whether it answers."""
    where = f"entry `{entry.name}` of {entry.file}"
    again = f"tidegate install {entry.client.name} --force"
    environment = {"HOME": str(home_directory()), "PATH": "/usr/bin:/bin", **entry.variables}
    try:
        process = await asyncio.create_subprocess_exec(
            *entry.words, cwd="/", env=environment, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        text = f"{where} cannot start `{entry.words[0]}`: {error.strerror}"
        return fault(entry.label, text, again)
    try:
        answer, errors = await asyncio.wait_for(_hello(process), patience_s)
    except TimeoutError:
        text = f"{where} does not answer within {patience_s:g} s"
        return fault(entry.label, text, "Run the command of the entry in a terminal to see why")
    finally:
        await _end(process)
    if "result" in answer:
        return ok(entry.label, f"{where} starts and answers")
    reason = answer.get("error", {}).get("message") or errors or "it ended without an answer"
    to_do = again if "error" not in answer else f"Correct what it says; if it is the entry: {again}"
    return fault(entry.label, f"{where} does not start: {reason}", to_do)


async def _hello(process: asyncio.subprocess.Process) -> tuple[dict[str, Any], str]:
    """The answer, and what a program that gave none says on standard error."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        return {}, ""
    errors = asyncio.ensure_future(stderr.read())
    try:
        with suppress(OSError):
            stdin.write(json.dumps(_HELLO).encode() + b"\n")
            await stdin.drain()
        while line := await stdout.readline():
            with suppress(ValueError):
                answer: Any = json.loads(line)
                if isinstance(answer, dict) and ("result" in answer or "error" in answer):
                    return cast("dict[str, Any]", answer), ""
        return {}, _reason((await errors).decode("utf-8", "replace"))
    finally:
        errors.cancel()


def _reason(text: str) -> str:
    """The line that says why a program ended: the last, but if it is uv's, which gives hints after
    its errors."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = next((each for each in lines if each.startswith("error: ")), lines[-1])
    return redact(line.removeprefix("tidegate: ").removeprefix("error: ")[:_MOST_REASON])


async def _end(process: asyncio.subprocess.Process) -> None:
    """The end of its input ends it; what does not end is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _check_address(entry: Installed, patience_s: float) -> Finding:
    """Ask a server of this machine for its health; others are not asked."""
    url = entry.address
    where = f"entry `{entry.name}` of {entry.file}"
    try:
        parts = parse_http_url(url)
    except ValueError:
        return fault(
            entry.label, f"{where} has an address that is no URL of HTTP",
            f"tidegate install {entry.client.name} --http URL --force",
        )  # fmt: skip
    if not is_this_machine(parts.host):
        return ok(entry.label, f"{where} names {parts.host}, which was not asked")
    tokens = token_variables_of(entry.client, entry.fields)
    missing = [name for name in tokens if name not in os.environ]
    place = f"{parts.host}:{parts.tcp_port}"
    server = ServerAddress(parts.host, parts.tcp_port, tls=parts.scheme == "https")
    try:
        async with asyncio.timeout(patience_s):
            answer = await send_request(server, "GET", "/health", [], b"", patience_s)
            await answer.body()
    except (WireError, TimeoutError):
        return fault(
            entry.label, f"{where}: no server answers at {place}",
            f"tidegate serve --http {place}",
        )  # fmt: skip
    if missing:
        text = f"{where}: the variable {missing[0]} with the token is not set here"
        return note(entry.label, text, "Set it where the client starts")
    return ok(entry.label, f"{where}: a server answers at {place}")


def _running(state: Path) -> str:
    """The instance of the server on this state; empty if none runs."""
    try:
        found = HandshakeFile(state).read(time.time())
    except TidegateError:
        return ""
    return found.instance if found is not None else ""


async def _end_started(state: Path, before: str) -> None:
    """End the server that a bridge has started since."""
    discovery = Discovery(HandshakeFile(state), ())
    with suppress(TidegateError):
        found = await discovery.look()
        if found is not None and found.by_bridge and found.instance != before and not before:
            await discovery.end(found)
            await has_ended_on(state, found.pid)
