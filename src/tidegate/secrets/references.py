"""How secrets come in: a URL or a setting never holds one, only a reference to it.

A reference is `${ENV:NAME}`, `${FILE:/path}`, for a source `${KEYRING:NAME}`, or one of a kind that
`secrets.readers` reads; `resolve` puts the secret in its place at the moment a connection is
opened, and the result is never stored. A password that a person has typed, and that is not saved
yet, is `${TYPED:NAME}` meanwhile. Decides nothing about who may see secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import MappingProxyType

from tidegate.errors import Code, TidegateError
from tidegate.secrets.readers import (
    MAX_SECRET_BYTES,
    UNRESOLVED,
    Reading,
    Reference,
    entry_of,
    find_kind,
    meant_form,
    misspelling_of,
    read_now,
)

HINT = "Write `${ENV:NAME}` or `${FILE:/path}` in its place."
# As text, because a start often needs no pattern: each is compiled when it is first used.
REFERENCE = r"\$\{([A-Za-z]*):([^}]*)\}"
KINDS = ("ENV", "FILE", "KEYRING")
"""Kinds of references that the URL and the options of a source may hold, besides those of
`secrets.readers`."""
READ_ANYWHERE = ("ENV", "FILE")
"""Those of them that other settings may hold, too: nothing waits for a person there."""
_typed: dict[str, str] = {}
_at_hand: ContextVar[Mapping[Reference, Reading]] = ContextVar(
    "secrets", default=MappingProxyType({})
)
_numbers = count(1)


def check_references(url: str, kinds: Collection[str] = KINDS) -> None:
    """Refuse a reference that no secret could ever take the place of.

    Raises: TidegateError SOURCE_URL with the reference as it should be written.
    """
    for found in re.finditer(r"\$\{([^}]*)(\}?)", url):
        inside, end = found.groups()
        kind, colon, name = inside.partition(":")
        if not end:
            raise _no_reference("${", "has no `}`.", HINT)  # what follows may be a password
        if kind == "TYPED" and name in _typed:
            continue
        if kind in kinds and name:
            continue
        if kind in kinds:
            raise _no_reference(found[0], "names no secret.", HINT)
        if colon and find_kind(kind) is not None:
            fault = misspelling_of(kind, name)
            if fault is None:
                continue
            raise _no_reference(found[0], *fault)
        if kind.upper() in kinds and name:
            raise _no_reference(
                found[0], "is not a reference.", f"Did you mean `${{{kind.upper()}:{name}}}`?"
            )
        if not colon and re.fullmatch(r"\w+", inside):
            raise _no_reference(
                found[0], "is not a reference.", f"Did you mean `${{ENV:{inside}}}`?"
            )
        meant = meant_form(kind, kinds) if colon else None
        hint = f"Did you mean `{meant}`?" if meant else HINT
        raise _no_reference(found[0], "refers to no known kind of secret.", hint)


def is_reference(text: str, kinds: Collection[str] | None = None) -> bool:
    """Whether a text is one reference and nothing else; of these `kinds` or of `secrets.readers`,
    where they are given."""
    found = re.fullmatch(r"\$\{(\w+):[^}]+\}", text)
    if found is None or kinds is None or found[1] in kinds:
        return found is not None
    return find_kind(found[1]) is not None


def _no_reference(text: str, problem: str, hint: str) -> TidegateError:
    return TidegateError(Code.SOURCE_URL, f"`{text[:80]}` in the URL {problem}", hint=hint)


def variables_of(text: str) -> list[str]:
    """The names of the environment variables that a URL or an option refers to."""
    return [name for kind, name in re.findall(REFERENCE, text) if kind == "ENV"]


def files_of(text: str) -> list[str]:
    """The paths of the files that a URL or an option refers to."""
    return [name for kind, name in re.findall(REFERENCE, text) if kind == "FILE"]


def keyring_entries_of(text: str) -> list[str]:
    """The names of the keyring's entries that a URL or an option refers to."""
    return [name for kind, name in re.findall(REFERENCE, text) if kind == "KEYRING"]


def elsewhere_in(texts: Iterable[str]) -> list[Reference]:
    """The references in texts whose secrets `secrets.readers` reads."""
    found = [each for text in texts if "${" in text for each in re.findall(REFERENCE, text)]
    own = (*KINDS, "TYPED")
    return sorted({each for each in found if each[0] not in own and entry_of(each[0]) is not None})


def refuse_server_secrets(texts: Iterable[str]) -> None:
    """Refuse references in what a caller gave, but to the password that it gave itself.

    Raises: TidegateError POLICY_DENIED.
    """
    for text in texts:
        if any(kind != "TYPED" for kind, _ in re.findall(REFERENCE, text)):
            raise TidegateError(
                Code.POLICY_DENIED,
                "A temporary source cannot use a secret of the server.",
                details={"rule": "source.temporary"},
            )


@contextmanager
def at_hand(readings: Mapping[Reference, Reading]) -> Generator[None]:
    """While the block runs, `resolve` has these secrets, besides those that it had."""
    before = _at_hand.set({**_at_hand.get(), **readings})
    try:
        yield
    finally:
        _at_hand.reset(before)


def readings_at_hand(texts: Iterable[str]) -> list[Reading]:
    """What `at_hand` has of the secrets that `elsewhere_in` finds in the texts."""
    known = _at_hand.get()
    return [known[each] for each in elsewhere_in(texts) if each in known] if known else []


class HeldSecret:
    """A secret that is not saved, kept in memory until `release`; `reference` is written in its
    place."""

    def __init__(self, secret: str) -> None:
        self._name = f"{next(_numbers)}"
        self.reference = f"${{TYPED:{self._name}}}"
        _typed[self._name] = secret

    def release(self) -> None:
        """Forget the secret. Safe to call twice."""
        _typed.pop(self._name, None)


@contextmanager
def typed(password: str) -> Generator[str]:
    """A reference to a password that is not saved, for as long as the block runs."""
    held = HeldSecret(password)
    try:
        yield held.reference
    finally:
        held.release()


def resolve(url: str) -> str:
    """The URL with each reference replaced by its secret, percent-encoded where the URL has the
    form `scheme://`. What begins otherwise is read by a driver, as it is.

    Only for URLs that an operator gave: a reference may name any file this process can read.
    Raises: TidegateError SOURCE_URL if a reference leads nowhere.
    """
    if "${" not in url:
        return url
    if not re.match(r"[A-Za-z][\w+.-]*://", url):
        return resolve_option(url)
    from urllib.parse import quote

    def secret(reference: re.Match[str]) -> str:
        return quote(_fetch(reference[1], reference[2]), safe="")

    return re.sub(REFERENCE, secret, url)


def hide_references(text: str) -> str:
    """The text with an `x` in the place of each reference: what is around them can be checked
    before a secret is there."""
    return re.sub(REFERENCE, "x", text)


def resolve_option(value: str) -> str:
    """The value of a source's option with each reference replaced by its secret.

    Raises: as `resolve`.
    """
    return re.sub(REFERENCE, lambda reference: _fetch(reference[1], reference[2]), value)


def _fetch(kind: str, name: str) -> str:
    if kind == "ENV":
        value = os.environ.get(name)
        if value is None:
            raise TidegateError(
                Code.SOURCE_URL,
                f"The environment variable `{name}` is not set.",
                hint=f"Set `{name}` where the server starts, or keep the password with `tidegate "
                "source update NAME --ask-password`.",
                details={"cause": UNRESOLVED},
            )
        return value
    if kind == "TYPED" and name in _typed:
        return _typed[name]
    found = _at_hand.get().get((kind, name))
    if found is not None:
        return found.secret
    if kind == "KEYRING":
        raise TidegateError(
            Code.SOURCE_URL, f"The keyring's entry `{name}` cannot be used here.", hint=HINT
        )
    if kind == "FILE":
        try:
            content = Path(name).read_bytes()[: MAX_SECRET_BYTES + 1]
            if len(content) <= MAX_SECRET_BYTES:
                return content.decode().rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise TidegateError(
                Code.SOURCE_URL,
                f"The secret file `{name}` cannot be read: {reason}.",
                hint="Correct the reference, or let the account of this program read the file.",
                details={"path": name, "cause": UNRESOLVED},
            ) from None
        raise TidegateError(Code.SOURCE_URL, f"The secret file `{name}` is larger than 64 KiB.")
    if entry_of(kind) is not None:
        return read_now([(kind, name)])[kind, name].secret
    raise TidegateError(
        Code.SOURCE_URL,
        f"The source refers to a secret by the unknown kind `{kind}`.",
        hint="Use `${ENV:NAME}` or `${FILE:/path}`.",
    )
