"""Reads secrets from where a login names them: the environment, a file, or a program's output.

Each is read when a request needs it, so that a renewed one counts at once. No error holds any part
of a secret, nor what a program printed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.products.cloud.auth_settings import AuthSettings

_MOST_BYTES: Final = 65_536
_PROGRAM_S: Final = 30.0


class SecretValue(msgspec.Struct, frozen=True):
    """A secret, and in words where it came from, such as "the variable NETLIFY_TOKEN"."""

    value: bytes
    origin: str

    @property
    def text(self) -> str:
        """Raises: TidegateError CREDENTIAL_UNAVAILABLE if it is no text for one header."""
        try:
            text = self.value.decode("ascii")
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            raise unavailable(f"{self.origin} holds characters that no header may have")
        return text

    def __repr__(self) -> str:
        return f"SecretValue(origin={self.origin!r})"


def unavailable(problem: str, *, hint: str | None = None, path: str = "") -> TidegateError:
    """The error for a credential that is not there; `problem` holds no secret."""
    return TidegateError(
        Code.CREDENTIAL_UNAVAILABLE,
        f"{problem[:1].upper()}{problem[1:]}.",
        hint=hint,
        details={"path": path} if path else None,
    )


def variable(name: str, environment: Mapping[str, str]) -> SecretValue:
    """Raises: TidegateError CREDENTIAL_UNAVAILABLE that names the variable."""
    value = environment.get(name, "")
    if not value:
        raise unavailable(
            f"the environment variable {name} is not set",
            hint=f"Set {name} where the server runs, or name another login in `cloud.providers`.",
        )
    return SecretValue(value.encode("utf-8", "surrogateescape"), f"the variable {name}")


def file(path: str) -> SecretValue:
    """Raises: TidegateError CREDENTIAL_UNAVAILABLE that names the file."""
    place = expand(path)
    try:
        with place.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise unavailable(
            f"the secret file {place} cannot be read: {reason}", path=str(place)
        ) from (None)
    content = content.strip(b"\r\n")
    if not content or len(content) > _MOST_BYTES:
        problem = "is empty" if not content else f"has more than {_MOST_BYTES:,} bytes"
        raise unavailable(f"the secret file {place} {problem}", path=str(place))
    return SecretValue(content, f"the file {place}")


async def output(command: tuple[str, ...]) -> SecretValue:
    """What a program prints, without the line's end. It runs without a shell and without input.

    Raises: TidegateError CREDENTIAL_UNAVAILABLE that names the program and not its arguments.
    """
    origin = f"the program {command[0]}"
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise unavailable(f"{origin} cannot be run: {error.strerror}") from None
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        async with asyncio.timeout(_PROGRAM_S):
            content = await process.stdout.read(_MOST_BYTES + 1)
            while len(content) <= _MOST_BYTES and (more := await process.stdout.read(_MOST_BYTES)):
                content += more
            if len(content) > _MOST_BYTES:
                raise unavailable(f"{origin} prints more than {_MOST_BYTES:,} bytes")
            status = await process.wait()
    except TimeoutError:
        raise unavailable(f"{origin} did not end within {_PROGRAM_S:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    content = content.strip(b"\r\n")
    if status or not content:
        problem = f"ended with the status {status}" if status else "printed nothing"
        raise unavailable(f"{origin} {problem}", hint="Run it by hand to see why.")
    return SecretValue(content, origin)


async def credential(auth: AuthSettings, environment: Mapping[str, str]) -> SecretValue | None:
    """The secret of a login; None if the login names none.

    Raises: TidegateError CREDENTIAL_UNAVAILABLE.
    """
    if auth.credentialscommand:
        return await output(auth.credentialscommand)
    if auth.credentialsenvvar:
        return variable(auth.credentialsenvvar, environment)
    if auth.credentialsfilepathenvvar:
        path = variable(auth.credentialsfilepathenvvar, environment)
        return file(path.value.decode("utf-8", "surrogateescape"))
    return file(auth.credentialsfilepath) if auth.credentialsfilepath else None
