"""The handshake file, with which a bridge finds and authenticates the server of its state.

The file is `STATE/bridge/handshake.json`, mode 0600 in a directory of mode 0700. A running server
holds a lock next to the file, which the operating system releases when the process ends; a file
without a locked lock is stale. A reader refuses a file that another user could have written.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

from tidegate.config.addresses import is_loopback_address
from tidegate.errors import Code, TidegateError
from tidegate.system.file_locks import is_locked, take_lock, try_lock
from tidegate.system.file_rights import is_open_to_others, is_ours
from tidegate.system.private_files import (
    NotAFileError,
    make_private_directory,
    open_existing,
    open_file,
    replace_file,
)
from tidegate.system.processes import owner_of

VERSION = 1
PAGE = "/v1/bridge"
STATUS_PAGE = "/v1/bridge/status"
PROOF = "tidegate-proof"
CHALLENGE = "tidegate-challenge"

_MAX_BYTES = 16_384


class ServerAddress(NamedTuple):
    """Where a server listens: an address, a TCP port, and whether it speaks HTTPS there. With
    `is_own` the address is one of this machine, and is called from itself alone."""

    host: str
    port: int
    tls: bool = False
    is_own: bool = False

    @property
    def url(self) -> str:
        """The server's URL without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Handshake(NamedTuple):
    """The content of the handshake file of a running server.

    `expires_at` is the end of `token` in Unix seconds. `key` proves that the server on the port is
    the one that wrote the file. `patience_s` is the longest time that a call may be silent.
    `settings` is a digest of the server's settings file; empty without one. `release` is the
    server's version, `started_at` a Unix time, `by_bridge` whether a bridge started it.
    `variables` are the environment variables that its sources name, each with the digest of the
    value that the server has; empty if it has none. With `tls` the server speaks HTTPS.
    """

    version: int
    instance: str
    host: str
    port: int
    pid: int
    expires_at: float
    token: str
    key: str
    paths: tuple[str, ...]
    patience_s: float
    settings: str
    release: str
    started_at: float
    by_bridge: bool = False
    variables: Mapping[str, str] = {}
    tls: bool = False

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(self.host, self.port, self.tls, is_own=True)

    def is_of(self, release: str, environment: Mapping[str, str]) -> bool:
        """Whether the server has this version, and the values that `environment` has of the
        variables which its sources name."""
        return self.release == release and all(
            value == digest(self.key, name, environment.get(name))
            for name, value in self.variables.items()
            if name in environment
        )

    def proof(self, challenge: str) -> str:
        """The server's answer to a challenge."""
        message = f"{challenge}.{self.instance}.{self.host}.{self.port}.{self.pid}"
        return hmac.new(self.key.encode(), message.encode(), sha256).hexdigest()


def is_own_address(host: str) -> bool:
    """Whether this machine has it for its own: an address, and neither a name, nor one of many or
    of none, nor one that is another on each link."""
    from ipaddress import ip_address

    try:
        address = ip_address(host)
    except ValueError:
        return False
    if "%" in host or address.is_unspecified or address.is_multicast:
        return False
    if is_loopback_address(host):
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def digest(key: str, name: str, value: str | None) -> str:
    """A variable's value, for a process that has the handshake's key; empty if it is not set."""
    if value is None:
        return ""
    text = f"{name}\0{value}".encode(errors="surrogateescape")
    return hmac.new(key.encode(), text, sha256).hexdigest()


class HandshakeFile:
    """The directory of the handshake, below a state directory."""

    def __init__(self, state: Path) -> None:
        self.directory = state / "bridge"
        self.file = self.directory / "handshake.json"
        self.log = self.directory / "server.log"

    def prepare(self) -> None:
        """Create the directory. Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED."""
        try:
            make_private_directory(self.directory, parents=False)
        except OSError as error:
            raise _failed(f"cannot be created: {error.strerror}", self.directory) from None
        self.check()

    def check(self) -> None:
        """Check that other users cannot write in the directory.

        Raises: TidegateError BRIDGE_UNTRUSTED.
        """
        try:
            found = self.directory.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise untrusted("is not a directory", self.directory)
        _check_owner(found, self.directory)

    def lock(self, name: str, *, wait: bool) -> int | None:
        """Take a lock and return its descriptor, whose closing releases it.

        Without `wait`, returns None if another process holds it. Raises: TidegateError
        STATE_FAILED.
        """
        descriptor = self._open_lock(name)
        with suppress(OSError):
            if wait:
                take_lock(descriptor)
                return descriptor
            if try_lock(descriptor):
                return descriptor
        os.close(descriptor)
        return None

    def _open_lock(self, name: str) -> int:
        path = self.directory / f"{name}.lock"
        try:
            return open_file(path, "read and write", follow=False)
        except OSError as error:
            raise _failed(f"cannot be opened: {error.strerror}", path) from None

    def write(self, handshake: Handshake) -> None:
        """Replace the file atomically. Raises: TidegateError STATE_FAILED."""
        try:
            replace_file(self.file, json.dumps(handshake._asdict()).encode())
        except OSError as error:
            raise _failed(f"cannot be written: {error.strerror}", self.file) from None

    def remove(self) -> None:
        """Remove the file. Only its writer does so, while it holds the lock."""
        with suppress(OSError):
            self.file.unlink()

    def read(self, now: float) -> Handshake | None:
        """The handshake of the running server; None if no server runs. `now` is in Unix seconds.

        Raises: TidegateError BRIDGE_UNTRUSTED for a file that cannot be trusted, STATE_FAILED.
        """
        self.check()
        try:
            descriptor = open_existing(self.file)
        except FileNotFoundError:
            return None
        except NotAFileError:
            raise untrusted("is not a regular file", self.file) from None
        except OSError as error:
            if self.file.is_symlink():
                raise untrusted("is a symbolic link", self.file) from None
            raise _failed(f"cannot be read: {error.strerror}", self.file) from None
        with os.fdopen(descriptor, "rb") as file:
            _check_owner(os.fstat(file.fileno()), self.file)
            text = file.read(_MAX_BYTES)
        handshake = self._decode(text)
        if not self._is_held():
            return None
        self._check_life(handshake, now)
        return handshake

    def _decode(self, text: bytes) -> Handshake:
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != VERSION:
                raise untrusted("is of another version of Tidegate", self.file)
            if not isinstance(fields["paths"], list):
                raise TypeError
            fields["paths"] = tuple(cast(list[Any], fields["paths"]))
            known = {name: fields[name] for name in Handshake._fields if name in fields}
            handshake = Handshake(**known)  # a later version may have written more
            _check_types(handshake)
        except (ValueError, TypeError, KeyError):
            raise untrusted("does not hold a handshake", self.file) from None
        if not 0 < handshake.port < 65_536:
            raise untrusted("names an invalid port", self.file)
        if not handshake.token or not handshake.key or not handshake.instance:
            raise untrusted("has no token", self.file)
        words = handshake.token + handshake.key + handshake.instance
        if not (words.isascii() and words.isprintable() and 0 <= handshake.patience_s < 1e9):
            raise untrusted("does not hold a handshake", self.file)
        return handshake

    def _is_held(self) -> bool:
        """Whether a server holds the lock."""
        descriptor = self._open_lock("server")
        try:
            return is_locked(descriptor)
        finally:
            os.close(descriptor)

    def _check_life(self, handshake: Handshake, now: float) -> None:
        if not is_own_address(handshake.host):
            raise untrusted("names a host that is no address of this machine", self.file)
        if handshake.pid < 2:
            raise untrusted("names a process that cannot be a server", self.file)
        owner = owner_of(handshake.pid)
        if owner is None:
            raise untrusted("names a process that has ended", self.file)
        if owner == "others":
            raise untrusted("names a process of another user", self.file)
        if not now < handshake.expires_at:  # also false for NaN
            raise untrusted("has expired", self.file)


def untrusted(problem: str, path: Path) -> TidegateError:
    """The error for a handshake that is not trusted."""
    return TidegateError(
        Code.BRIDGE_UNTRUSTED, f"The handshake `{path}` {problem}", details={"path": str(path)}
    )


def _check_owner(found: os.stat_result, path: Path) -> None:
    if not is_ours(found):
        raise untrusted("belongs to another user", path)
    if is_open_to_others(found):
        raise untrusted("is open to other users", path)


def _check_types(fields: Handshake) -> None:
    """Check the types of the decoded values. Raises: TypeError."""
    variables: Any = fields.variables
    if not isinstance(variables, dict):
        raise TypeError
    for value in (fields.port, fields.pid):
        if type(value) is not int:
            raise TypeError
    for value in (
        fields.instance,
        fields.host,
        fields.token,
        fields.key,
        fields.settings,
        fields.release,
        *fields.paths,
        *cast(dict[Any, Any], variables),
        *cast(dict[Any, Any], variables).values(),
    ):
        if type(value) is not str:
            raise TypeError
    for value in (fields.by_bridge, fields.tls):
        if type(value) is not bool:
            raise TypeError
    for value in (fields.expires_at, fields.patience_s, fields.started_at):
        if type(value) not in (int, float):
            raise TypeError


def _failed(problem: str, path: Path) -> TidegateError:
    return TidegateError(
        Code.STATE_FAILED, f"The handshake's `{path}` {problem}", details={"path": str(path)}
    )
