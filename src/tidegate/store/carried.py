"""What a caller's later calls need, kept so that any process on the state finds it.

Rows that were read and not yet shown, the database that a caller has chosen, what an id of a tool
names: a process has them in memory, and where others may get the next call it keeps them here
as well. Bodies are encrypted under a key that is not in the state, and bound to their place, so
that who can read the tables reads nothing of them, and who can write there makes none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.store.encryption import decrypt, encrypt

MOST_OF_OWNER = 64
MOST_SWEPT = 128
"""Parts of ended values that one `put` or `sweep` removes: more than a `put` makes, and so few that
a caller does not wait for what others have left."""

Value = TypeVar("Value")


class Carried(NamedTuple):
    """One value: its `kind` and `id`, whose it is, and the Unix time at which it ends."""

    kind: str
    id: str
    owner: str
    expires_at: float


class CarriedStore(Protocol):
    """Values in parts, numbered from 0."""

    def put(
        self, value: Carried, parts: Sequence[bytes], now: float, most: int = MOST_OF_OWNER
    ) -> None:
        """Keep a value in place of the one with this kind and id, and remove some of what has
        ended by `now`. Of more than `most` of this kind and owner those go that end first."""
        ...

    def read(
        self, kind: str, id: str, now: float, first: int = 0, last: int = 0
    ) -> tuple[tuple[int, bytes], ...]:
        """The parts with these numbers, in their order, as far as they are there."""
        ...

    def remove(self, kind: str, id: str) -> None:
        """Remove a value, if it is there."""
        ...

    def sweep(self, now: float) -> int:
        """Remove `MOST_SWEPT` parts at most of what has ended by `now`; how many went."""
        ...


class CarriedValues:
    """Encrypted values of one kind. Its methods call the state, so not on an event loop."""

    def __init__(
        self, store: CarriedStore, kind: str, secret: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        """`secret` gives 64 hexadecimal digits, and is called when they are needed."""
        self._store = store
        self._kind = kind
        self._secret = secret
        self._clock = clock
        self._key = b""

    def put(
        self,
        id: str,
        owner: str,
        parts: Sequence[bytes],
        lifetime_s: float,
        most: int = MOST_OF_OWNER,
    ) -> None:
        """Keep a value for so long, one of `most` of its owner. Raises: TidegateError
        STATE_FAILED."""
        now = self._clock()
        sealed = [
            encrypt(self._find_key(), part, self._bound(id, n)) for n, part in enumerate(parts)
        ]
        self._store.put(Carried(self._kind, id, owner, now + lifetime_s), sealed, now, most)

    def read(self, id: str, first: int = 0, last: int = 0) -> list[bytes]:
        """The parts with these numbers; fewer where they are not there, or were not made by this
        state's gates. Raises: TidegateError STATE_FAILED."""
        found: list[bytes] = []
        for n, sealed in self._store.read(self._kind, id, self._clock(), first, last):
            part = decrypt(self._find_key(), sealed, self._bound(id, n))
            if part is None or n != first + len(found):
                break
            found.append(part)
        return found

    def remove(self, id: str) -> None:
        """Remove a value. Raises: TidegateError STATE_FAILED."""
        self._store.remove(self._kind, id)

    def _find_key(self) -> bytes:
        if not self._key:
            self._key = bytes.fromhex(self._secret())
        return self._key

    def _bound(self, id: str, part: int) -> bytes:
        return msgspec.msgpack.encode((self._kind, id, part))


def name_of(*parts: str) -> str:
    """An id that is made of these words, and tells nothing of them."""
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:40]


def decode_carried(
    decode: Callable[[bytes], Value], body: bytes, what: str, hint: str = ""
) -> Value:
    """What a value holds. Raises: TidegateError RESULT_GONE where another release of Tidegate has
    kept it in another form."""
    try:
        return decode(body)
    except msgspec.DecodeError:
        raise TidegateError(
            Code.RESULT_GONE,
            f"{what} was kept by another release of Tidegate, in a form that this one cannot read",
            hint=hint or None,
        ) from None
