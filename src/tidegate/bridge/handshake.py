"""The handshake file: how a bridge finds the server of its state directory, and trusts it.

`STATE/bridge/handshake.json`, mode 0600 in a directory of mode 0700. While the server lives it
holds a lock beside the file, which the system takes from it when it dies: a file without a holder
of the lock is stale. A reader trusts nothing that another user could have written.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

from tidegate.config.atomic_files import replace_file
from tidegate.errors import Code, TidegateError

VERSION = 1
PAGE = "/v1/bridge"
CHALLENGE = "tidegate-challenge"
LOOPBACK = ("127.0.0.1", "::1")

_MOST_BYTES = 16_384


class Handshake(NamedTuple):
    """What a running server tells bridges.

    `expires_at` is the end of `token`, in seconds of the Unix clock. `key` proves that who answers
    on the port is who wrote the file. `patience_s` is the longest that a call may be silent.
    `settings` is the mark of those that the server was started with; empty without any.
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
    settings: str = ""

    def proof(self, challenge: str) -> str:
        """What the server answers to a challenge."""
        said = f"{challenge}.{self.instance}.{self.host}.{self.port}.{self.pid}"
        return hmac.new(self.key.encode(), said.encode(), sha256).hexdigest()


class HandshakeFile:
    """The directory of the handshake, below a state directory."""

    def __init__(self, state: Path) -> None:
        self.directory = state / "bridge"
        self.file = self.directory / "handshake.json"
        self.log = self.directory / "server.log"

    def prepare(self) -> None:
        """Make the directory. Raises: TidegateError STATE_FAILED, BRIDGE_UNTRUSTED."""
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise _failed(f"cannot be made: {error.strerror}", self.directory) from None
        self.check()

    def check(self) -> None:
        """Raises: TidegateError BRIDGE_UNTRUSTED if others could have changed what is in there."""
        try:
            found = self.directory.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise check_trust("is not a directory", self.directory)
        _check_owner(found, self.directory)

    def lock(self, name: str, *, wait: bool) -> int | None:
        """Hold a lock until the descriptor is closed; None if another has it and we do not wait.

        Raises: TidegateError STATE_FAILED.
        """
        return self._flock(name, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def _flock(self, name: str, how: int) -> int | None:
        path = self.directory / f"{name}.lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise _failed(f"cannot be opened: {error.strerror}", path) from None
        try:
            fcntl.flock(descriptor, how)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def write(self, handshake: Handshake) -> None:
        """Put the file there, whole, in the place of an older one. Raises: TidegateError
        STATE_FAILED."""
        try:
            replace_file(self.file, json.dumps(handshake._asdict()).encode())
        except OSError as error:
            raise _failed(f"cannot be written: {error.strerror}", self.file) from None

    def remove(self) -> None:
        """Take the file away. Its writer alone does, while it holds the lock."""
        with suppress(OSError):
            self.file.unlink()

    def read(self, now: float) -> Handshake | None:
        """The handshake of the server that runs; None if none does.

        Raises: TidegateError BRIDGE_UNTRUSTED for a file that cannot be trusted, STATE_FAILED.
        """
        self.check()
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self.file, flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            if self.file.is_symlink():
                raise check_trust("is a symbolic link", self.file) from None
            raise _failed(f"cannot be read: {error.strerror}", self.file) from None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise check_trust("is not a regular file", self.file)
            _check_owner(found, self.file)
            text = file.read(_MOST_BYTES)
        handshake = self._decode(text)
        if not self._is_held():
            return None
        self._check_life(handshake, now)
        return handshake

    def _decode(self, text: bytes) -> Handshake:
        try:
            told: dict[str, Any] = json.loads(text)
            if told["version"] != VERSION:
                raise check_trust("is of another version of Tidegate", self.file)
            if not isinstance(told["paths"], list):
                raise TypeError
            told["paths"] = tuple(cast(list[Any], told["paths"]))
            handshake = Handshake(**told)
            _check_types(handshake)
        except (ValueError, TypeError, KeyError):
            raise check_trust("does not hold a handshake", self.file) from None
        if handshake.host not in LOOPBACK:
            raise check_trust("names a host that is not loopback", self.file)
        if not 0 < handshake.port < 65_536:
            raise check_trust("names a port that is none", self.file)
        if not handshake.token or not handshake.key or not handshake.instance:
            raise check_trust("holds no token", self.file)
        words = handshake.token + handshake.key + handshake.instance
        if not (words.isascii() and words.isprintable() and 0 <= handshake.patience_s < 1e9):
            raise check_trust("does not hold a handshake", self.file)
        return handshake

    def _is_held(self) -> bool:
        """Whether a server lives that wrote the file. Who looks shares the lock with others who
        look, so that none of them takes another for a server."""
        descriptor = self._flock("server", fcntl.LOCK_SH | fcntl.LOCK_NB)
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

    def _check_life(self, handshake: Handshake, now: float) -> None:
        if handshake.pid < 2:
            raise check_trust("names a process that cannot be a server", self.file)
        try:
            os.kill(handshake.pid, 0)
        except PermissionError:
            raise check_trust("names a process of another user", self.file) from None
        except (ProcessLookupError, OverflowError):
            raise check_trust("names a process that has ended", self.file) from None
        if not now < handshake.expires_at:  # nor if it is no number
            raise check_trust("has expired", self.file)


def check_trust(problem: str, path: Path) -> TidegateError:
    """Why a handshake is not believed."""
    return TidegateError(
        Code.BRIDGE_UNTRUSTED, f"The handshake `{path}` {problem}", details={"path": str(path)}
    )


def _check_owner(found: os.stat_result, path: Path) -> None:
    if found.st_uid != os.geteuid():
        raise check_trust("belongs to another user", path)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise check_trust("is open to other users", path)


def _check_types(told: Handshake) -> None:
    """Raises: TypeError unless every value is of its type: what was read may be anything."""
    for value in (told.port, told.pid):
        if type(value) is not int:
            raise TypeError
    for value in (
        told.instance,
        told.host,
        told.token,
        told.key,
        told.settings,
        *told.paths,
    ):
        if type(value) is not str:
            raise TypeError
    for value in (told.expires_at, told.patience_s):
        if type(value) not in (int, float):
            raise TypeError


def _failed(problem: str, path: Path) -> TidegateError:
    return TidegateError(
        Code.STATE_FAILED, f"The handshake's `{path}` {problem}", details={"path": str(path)}
    )
