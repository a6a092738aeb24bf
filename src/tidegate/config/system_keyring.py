"""Secrets in the keyring of the operating system, by the library `keyring` (extra `keyring`): the
Keychain of macOS, the Secret Service of Linux desktops.

The library calls the keyring from this process, so a secret is in no process list. A keyring that
is locked may wait for a person, however long: it is asked on a thread, one question at a time, and
an answer that does not come in time is an error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, TypeVar

from tidegate.config.installation import EXTRAS, add_command
from tidegate.errors import Code, TidegateError
from tidegate.secrets.readers import UNRESOLVED, Reading, Reference
from tidegate.secrets.redaction import redact
from tidegate.secrets.references import at_hand, keyring_entries_of
from tidegate.system.file_rights import find_runtime_socket

SERVICE = "tidegate"
"""The service of our entries in the keyring; the name of an entry is its user."""
ANSWER_S = 20.0
"""How long a server waits for the keyring."""
PERSON_S = 120.0
"""How long a command waits, while a person may type the keyring's password."""

_FILE_INSTEAD = (
    "or keep the password in a file that only your account can read: `tidegate source update NAME "
    "--ask-password --keep-in file`"
)
_BUS = "DBUS_SESSION_BUS_ADDRESS"
_one_question = threading.Lock()
_T = TypeVar("_T")


def read_secret(name: str, within_s: float = PERSON_S) -> str:
    """The secret of one of our entries. Raises: TidegateError KEYRING_FAILED, ENGINE_MISSING."""
    found = _ask(lambda library: library.get_password(SERVICE, name), within_s)
    if not isinstance(found, str):
        raise _failed(
            f"The keyring has no entry `{name}` of the service `{SERVICE}`.",
            "Give the password again with `tidegate source update NAME --ask-password`.",
        )
    return found


def save_secret(name: str, secret: str) -> None:
    """Make an entry, and see that it is there. Raises: TidegateError KEYRING_FAILED,
    ENGINE_MISSING."""

    def save(library: ModuleType) -> bool:
        library.set_password(SERVICE, name, secret)
        return library.get_password(SERVICE, name) == secret

    if not _ask(save, PERSON_S):
        raise _failed("The keyring did not keep the password that it was given.")


def remove_secret(name: str) -> None:
    """Remove an entry. Raises: TidegateError KEYRING_FAILED, ENGINE_MISSING; not if none is
    there."""

    def remove(library: ModuleType) -> None:
        if library.get_password(SERVICE, name) is not None:
            library.delete_password(SERVICE, name)

    _ask(remove, PERSON_S)


def keyring_title() -> str:
    """The keyring that is used, for a person to read. Raises: TidegateError KEYRING_FAILED if none
    works here, ENGINE_MISSING."""
    return _ask(_usable, ANSWER_S)


@asynccontextmanager
async def keyring_secrets(*texts: str) -> AsyncGenerator[None]:
    """While the block runs, `resolve` has the secrets of the keyring that the texts refer to.

    Raises: TidegateError KEYRING_FAILED, ENGINE_MISSING.
    """
    from asyncio import to_thread

    names = sorted({name for text in texts for name in keyring_entries_of(text)})
    with at_hand(await to_thread(_read_all, names) if names else {}):
        yield


def _read_all(names: Collection[str]) -> dict[Reference, Reading]:
    return {("KEYRING", name): Reading(read_secret(name, ANSWER_S)) for name in names}


def _usable(library: ModuleType) -> str:
    backend: Any = library.get_keyring()
    priority: Any = backend.priority
    if priority <= 0:  # the library's own substitutes, which keep nothing
        raise _failed("No keyring works here.", f"Start one, {_FILE_INSTEAD}.")
    return str(backend.name)


def _ask(question: Callable[[ModuleType], _T], within_s: float) -> _T:
    """The answer of the library. Raises: TidegateError KEYRING_FAILED, ENGINE_MISSING."""
    if not _one_question.acquire(timeout=within_s):
        raise _late(within_s)
    answers: SimpleQueue[tuple[_T | None, BaseException | None]] = SimpleQueue()

    def answer() -> None:
        try:
            _find_bus()
            answers.put((question(_library()), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            answers.put((None, error))
        finally:
            _one_question.release()

    # A daemon: what waits for a person must not keep the process from ending.
    threading.Thread(target=answer, name="keyring", daemon=True).start()
    try:
        found, error = answers.get(timeout=within_s)
    except Empty:
        raise _late(within_s) from None
    if error is not None:
        raise _explained(error) from None
    return found  # pyright: ignore[reportReturnType]


def _library() -> ModuleType:
    try:
        import keyring
    except ImportError as missing:
        raise TidegateError(
            Code.ENGINE_MISSING,
            f"The keyring needs the package `{EXTRAS['keyring']}`.",
            hint=f"Run: {add_command('keyring')}",
        ) from missing
    return keyring


def _find_bus() -> None:
    """Name the session's bus where the process has no environment, as a client's child."""
    if _BUS not in os.environ and (path := find_runtime_socket("bus")) is not None:
        os.environ[_BUS] = f"unix:path={path}"


def _explained(error: BaseException) -> BaseException:
    """The library's errors as ours; their backends raise whatever their systems raise."""
    if isinstance(error, TidegateError) or not isinstance(error, Exception):
        return error
    name = type(error).__name__
    if name == "KeyringLocked":
        return _failed("The keyring is locked.", f"Unlock it, {_FILE_INSTEAD}.")
    if name == "NoKeyringError":
        return _failed("No keyring works here.", f"Start one, {_FILE_INSTEAD}.")
    text = redact(str(error).strip().partition("\n")[0][:200])
    return _failed(f"The keyring failed: {name}{f': {text}' if text else ''}.")


def _late(within_s: float) -> TidegateError:
    return _failed(
        f"The keyring did not answer within {within_s:.0f} s; it may wait for its password.",
        f"Unlock it, {_FILE_INSTEAD}.",
    )


def _failed(message: str, hint: str | None = None) -> TidegateError:
    return TidegateError(Code.KEYRING_FAILED, message, hint=hint, details={"cause": UNRESOLVED})
