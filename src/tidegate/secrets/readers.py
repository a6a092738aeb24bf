"""Secrets that are kept elsewhere: a program prints them, or a server keeps them.

A kind of them is a `SecretEntry`, the kernel's own or that of a product. It is searched for only
where a reference is not to a variable, a file or the keyring. What is read is held in memory alone,
for as long as the connection or the request that needs it, and each reading may take seconds: it
runs on threads of its own, never on an event loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.product import Product, SecretEntry, add_installed, load, own_entries

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

UNRESOLVED = "reference"
"""`details["cause"]` of a reference whose secret is not there now."""

Reference = tuple[str, str]
"""The kind and the name of `${KIND:NAME}`."""

MAX_SECRET_BYTES = 65_536

GIVE_BACK_S = 3.0

_AT_ONCE = 4
"""How many are read at the same time."""


class Reading:
    """A secret that was read, and for how long it is good, on `time.monotonic`: until `login_until`
    it opens connections, at `session_until` the account is removed. None: it does not end.
    `give_back` has an account on lease removed earlier; it blocks for a few seconds at most, and
    never raises. Readings of one lease have the same."""

    __slots__ = ("give_back", "login_until", "read_at", "secret", "session_until")

    def __init__(
        self,
        secret: str,
        login_until: float | None = None,
        session_until: float | None = None,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self.secret = secret
        self.login_until = login_until
        self.session_until = session_until
        self.give_back = give_back
        self.read_at = time.monotonic()


class Misspelt(NamedTuple):
    """What is wrong with a reference, and how it is to be written."""

    problem: str
    hint: str


CheckName = Callable[[str], Misspelt | None]
"""Checks what a reference of the kind names, without reading anything."""
ReadSecrets = Callable[[Collection[str], Any], Mapping[str, Reading]]
"""Reads the secrets of some names. It gets the section of the settings that the entry names, or
None, and raises TidegateError SECRET_UNAVAILABLE, which names the place and never the secret."""


def _secrets_of(product: Product) -> Mapping[str, SecretEntry]:
    return product.secrets


@cache
def _kinds() -> dict[str, SecretEntry]:
    command = SecretEntry(
        '${COMMAND:["PROGRAM","ARGUMENT"]}',
        check="tidegate.secrets.command:check_name",
        read="tidegate.secrets.command:read_all",
    )
    return {"COMMAND": command, **own_entries(_secrets_of)}


def entry_of(kind: str) -> SecretEntry | None:
    """What is known of a kind; None for any other."""
    known = _kinds()
    return known.get(kind)


def find_kind(kind: str) -> SecretEntry | None:
    """As `entry_of`, of installed packages, too. Raises: TidegateError CONFIG_INVALID for a package
    that cannot be used."""
    known = _kinds()
    if kind not in known and kind.isupper():
        add_installed(known, _secrets_of, "kind of secrets", ("ENV", "FILE", "KEYRING", "TYPED"))
    return known.get(kind)


def meant_form(kind: str, others: Collection[str]) -> str | None:
    """How a reference is written whose kind is nearly this one."""
    import difflib

    known = _kinds()
    near = difflib.get_close_matches(kind.upper(), [*known, *others], 1)
    if not near:
        return None
    return known[near[0]].form if near[0] in known else f"${{{near[0]}:NAME}}"


def misspelling_of(kind: str, name: str) -> Misspelt | None:
    """What is wrong with the name of a kind that is known."""
    check: CheckName = load(_kinds()[kind].check)
    return check(name)


_sections: dict[str, Any] = {}


def use_settings(sections: Mapping[str, Any]) -> None:
    """Take the sections of the settings that this process reads secrets by from now on."""
    _sections.clear()
    _sections.update(sections)


def read_now(references: Collection[Reference]) -> dict[Reference, Reading]:
    """Read secrets, those of one kind together. Blocks.

    Raises: TidegateError SECRET_UNAVAILABLE, ENGINE_MISSING.
    """
    if _is_on_loop():
        raise TidegateError(Code.INTERNAL, "A secret would have been waited for on the event loop")
    found: dict[Reference, Reading] = {}
    for kind in sorted({kind for kind, _ in references}):
        entry = _kinds()[kind]
        read: ReadSecrets = load(entry.read)
        names = sorted({name for of, name in references if of == kind})
        readings = read(names, _sections.get(entry.section))
        found |= {(kind, name): readings[name] for name in names}
    return found


async def read_elsewhere(references: Collection[Reference]) -> dict[Reference, Reading]:
    """As `read_now`, while the event loop goes on."""
    from asyncio import get_running_loop

    return await get_running_loop().run_in_executor(_threads(), read_now, references)


async def give_back(readings: Iterable[Reading]) -> None:
    """Have the accounts on lease removed that are not over. What cannot be given back within
    `GIVE_BACK_S` ends with its lease."""
    now = time.monotonic()
    lent = {
        each.give_back
        for each in readings
        if each.give_back is not None and (each.session_until is None or each.session_until > now)
    }
    if not lent:
        return
    from asyncio import get_running_loop, wait

    loop = get_running_loop()
    returns = [loop.run_in_executor(_threads(), each) for each in lent]
    await wait(returns, timeout=GIVE_BACK_S)


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_AT_ONCE, "tidegate-secrets")


def _is_on_loop() -> bool:
    if "asyncio" not in sys.modules:
        return False
    from asyncio import _get_running_loop  # pyright: ignore[reportPrivateUsage] - raises nothing

    return _get_running_loop() is not None


def unavailable(reference: Reference, why: str, hint: str | None = None) -> TidegateError:
    """The error of a secret that cannot be read now. `why` ends the sentence, and holds neither
    output nor secret."""
    return TidegateError(
        Code.SECRET_UNAVAILABLE,
        f"The secret of `{shown(reference)}` cannot be read: {why}.",
        hint=hint,
        details={"cause": UNRESOLVED},
    )


def shown(reference: Reference) -> str:
    """The reference as errors name it. Of a program its name alone: arguments may be anything."""
    kind, name = reference
    if kind == "COMMAND":
        import json

        try:
            name = f"{json.loads(name)[0]} …"
        except (ValueError, TypeError, LookupError):
            name = "…"
    return f"${{{kind}:{name[:120]}}}"
