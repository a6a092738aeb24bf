"""Checks of one JDBC source, in the order in which a connection needs them.

The first that fails ends the checks: what comes after it could not work either.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from tidegate.app import App
from tidegate.cli.checks.finding import Finding, failed, fault, note, ok
from tidegate.cli.local_actor import ask
from tidegate.engines.common.errors import ACCOUNT
from tidegate.engines.registry import resolve_options, secrets_of
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect
from tidegate.model.sources import Source
from tidegate.products.jdbc.driver_preparation import drivers_of
from tidegate.products.jdbc.engine.driver_jars import find_jars
from tidegate.products.jdbc.engine.engine import fence_warnings
from tidegate.products.jdbc.engine.jvm.runtime import Runtime, find_runtime
from tidegate.products.jdbc.engine.known_databases import KnownDatabase
from tidegate.products.jdbc.engine.startup import start_worker
from tidegate.products.jdbc.engine.url import JdbcUrl, locate_jdbc, parse_jdbc_url
from tidegate.secrets.references import resolve_option

_MODULES = {
    "java.sql": "every driver needs it",
    "java.naming": "logins by LDAP, and some drivers",
    "java.security.jgss": "logins by Kerberos",
    "jdk.security.jgss": "logins by Kerberos",
    "jdk.charsets": "character sets beyond the usual ones, such as EBCDIC",
    "java.management": "some drivers and pools",
    "java.xml": "columns of XML",
}
"""Modules of Java that drivers use, and what for."""

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_CLIENT_SSL = 0x0800
_WANTS_TLS = {"require", "verify-ca", "verify-full", "required", "verify_ca", "verify_identity"}


async def check_jdbc(app: App, source: Source, patience_s: float) -> AsyncIterator[Finding]:
    """What was found, check by check; a fault is the last one."""
    try:
        async with secrets_of(source):
            url = parse_jdbc_url(resolve_option(source.url))
            options = resolve_options(source)
    except TidegateError as error:
        yield failed("url", error)
        return
    yield ok("url", f"{url.product.title}, {_KINDS[url.kind]}")
    try:
        runtime = await asyncio.to_thread(find_runtime, options.get("java"))
    except TidegateError as error:
        yield failed("java", error)
        return
    yield ok("java", f"Java {runtime.version}: {runtime.program}")
    try:
        located = await drivers_of(app.parts).locate(source)
        async with secrets_of(located):
            options = resolve_options(located)
        jars = find_jars(options, url)
        worker = await start_worker(options, url)
    except TidegateError as error:
        yield failed("driver", error)
        return
    await worker.leave()
    names = ", ".join([Path(jar).name for jar in jars[:3]]) + (", ..." if len(jars) > 3 else "")
    yield ok("driver", f"{worker.loaded.driver} {worker.loaded.version} of {names}")
    yield await asyncio.to_thread(_check_modules, runtime)
    if url.kind == "server":
        async for finding in _check_network(url, patience_s):
            yield finding
            if finding.state == "fault":
                return
    async for finding in _check_login(app, source, url, patience_s):
        yield finding


_KINDS: Mapping[str, str] = {
    "server": "a server",
    "file": "in a file",
    "memory": "in memory",
    "other": "as its driver reads it",
}


def _check_modules(runtime: Runtime) -> Finding:
    try:
        listing = subprocess.run(
            [runtime.program, "--list-modules"], capture_output=True, timeout=30, check=True
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError) as error:
        return note("modules", f"Java does not list its modules ({type(error).__name__})")
    there = {line.partition("@")[0].strip() for line in listing.splitlines()}
    missing = {name: use for name, use in _MODULES.items() if name not in there}
    if not missing:
        return ok("modules", "Java has the modules that drivers use")
    uses = "; ".join([f"{name} ({use})" for name, use in missing.items()])
    cure = "If the driver needs one, name another Java with the option `java`"
    return note("modules", f"Java has no {uses}", cure)


async def _check_network(url: JdbcUrl, patience_s: float) -> AsyncIterator[Finding]:
    """DNS, TCP and TLS of the first of the URL's hosts that is there."""
    place = locate_jdbc(url.text)
    hosts = [host for host in place.host.split(",") if host]
    if not hosts:
        yield note("network", "the URL's host and port are not known to Tidegate, and not tried")
        return
    failure = None
    for host in hosts:
        failure = await _resolve(host, place.port, patience_s)
        if failure is not None:
            continue
        if not place.port:
            yield ok("dns", f"{host} has an address")
            yield note("tcp", "the URL has no port, and the driver's own is not known to Tidegate")
            return
        failure = await _connect(host, place.port, patience_s)
        if failure is None:
            yield ok("dns", f"{host} has an address")
            yield ok("tcp", f"{host}:{place.port} accepts connections")
            yield await _check_tls(url, host, place.port, patience_s)
            return
    if failure is not None:
        yield failure


async def _resolve(host: str, port: int, patience_s: float) -> Finding | None:
    try:
        async with asyncio.timeout(patience_s):
            await asyncio.get_running_loop().getaddrinfo(host, port)
    except TimeoutError:
        return fault("dns", f"no name server answers for {host}", "Check the name servers")
    except (OSError, UnicodeError):
        return fault("dns", f"the name {host} has no address", "Correct the host in the URL")
    return None


async def _connect(host: str, port: int, patience_s: float) -> Finding | None:
    try:
        async with asyncio.timeout(patience_s):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        text = f"{host}:{port} did not answer within {patience_s:g} s"
        return fault("tcp", text, "Check that no firewall is between")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it failed"
        cure = "Check that the database runs there, and the port"
        return fault("tcp", f"{host}:{port} cannot be reached: {reason}", cure)
    writer.close()
    return None


async def _check_tls(url: JdbcUrl, host: str, port: int, patience_s: float) -> Finding:
    """Whether the server encrypts, where its protocol tells it before a login."""
    try:
        async with asyncio.timeout(patience_s):
            offered = await _offers_tls(url.product, host, port)
    except (OSError, EOFError, ValueError, IndexError, struct.error):
        text = f"{host}:{port} does not speak the protocol of {url.product.title}"
        return fault("tls", text, "Check the port")
    wanted = url.parameters.get("sslmode", url.parameters.get("sslMode", "")).lower() in _WANTS_TLS
    wanted = wanted or url.parameters.get("useSsl") == "true"
    if offered is None:
        return note("tls", f"not tried: the protocol of {url.product.title} is not known here")
    if wanted and not offered:
        cure = "Turn TLS on at the server, or leave the parameter out of the URL"
        return fault("tls", "the URL asks for encryption, and the server has none", cure)
    if not offered:
        return note("tls", "the server does not encrypt", "Turn TLS on at the server")
    if not wanted:
        text = "the server encrypts, and the URL leaves it to the driver"
        return note("tls", text, "Ask for it in the URL, with sslmode or sslMode")
    return ok("tls", "the server encrypts, and the URL asks for it")


async def _offers_tls(product: KnownDatabase, host: str, port: int) -> bool | None:
    """None if the product's protocol is not known. Raises: OSError, EOFError, ValueError."""
    if not product.tls_offer:
        return None
    reader, writer = await asyncio.open_connection(host, port)
    try:
        if product.tls_offer == "answer":
            # "SSLRequest" of PostgreSQL's frontend/backend protocol.
            writer.write(_SSL_REQUEST)
            answer = await reader.readexactly(1)
            if answer not in (b"S", b"N"):
                raise ValueError("another protocol")
            return answer == b"S"
        # "Protocol::HandshakeV10" of MySQL's client/server protocol.
        header = await reader.readexactly(4)
        greeting = await reader.readexactly(int.from_bytes(header[:3], "little"))
        if greeting[0] != 10:
            raise ValueError("another protocol")
        capabilities = greeting.index(b"\0") + 1 + 4 + 8 + 1
        (low,) = struct.unpack_from("<H", greeting, capabilities)
        return bool(low & _CLIENT_SSL)
    finally:
        writer.close()


async def _check_login(
    app: App, source: Source, url: JdbcUrl, patience_s: float
) -> AsyncIterator[Finding]:
    try:
        async with asyncio.timeout(max(patience_s, 30.0)):
            state = await ask(app, "driver doctor", Connect(), source.name, ConnectionState)
    except TimeoutError:
        yield fault("login", "the database did not answer", "Check that it is not overloaded")
        return
    except TidegateError as error:
        cure = error.hint
        if error.details.get("cause") == ACCOUNT:
            cure = "Correct the options `user` and `password`"
        elif error.code is Code.SOURCE_UNREACHABLE and url.kind == "server":
            cure = "Check the database's name in the URL, and the account's rights"
        yield fault("login", error.message, cure)
        return
    yield ok("login", state.current.server_version if state.current else "connected")
    warnings = fence_warnings(url)
    for warning in warnings:
        what, _, cure = warning.partition(": ")
        yield note("fences", what, cure)
    if not warnings:
        yield ok("fences", f"reads are kept from changing data by {_FENCES[url.product.fence]}")


_FENCES: Mapping[str, str] = {
    "driver": "a transaction that only reads, which the driver opens",
    "statement": "a transaction that only reads",
    "connection": "a connection that only reads",
    "none": "a file that is opened for reading only",
}
