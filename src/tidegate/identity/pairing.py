"""Pairing: a client asks for a token, a person grants one, the client fetches it once.

The client proves with PKCE (RFC 7636, S256) that it is the one that asked. A person decides, never
a bearer: what decides here is called by the command line and by the console alone. The short
id, such as `7F3K-92QM`, is for people to compare; the code is for the client alone and is kept as
a digest. A holder of the code without the verifier can spoil it and gain nothing.
"""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import Lockout, origin
from tidegate.identity.tokens import (
    Records,
    Tokens,
    check_token_name,
    rights_in_words,
    widened_rights,
)
from tidegate.model.actors import Actor
from tidegate.model.deadlines import CLOCKS, Clocks, Deadlines, is_ahead
from tidegate.store.access import PairingStore
from tidegate.store.api import SharedStore
from tidegate.store.records import Pairing, TokenRights

CODE_S = 300.0
MOST = 50
MOST_OF_ADDRESS = 10
KEPT_S = 3_600.0
FAILURES, WINDOW_S, LOCK_S = 5, 300.0, 900.0

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CODE = re.compile(r"[A-Za-z0-9_-]{43}")
# Without letters and digits that look alike.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_NAMES = 32
_NAME = re.compile(r"[^\x00-\x20\x7f]{1,64}")


class Asked(NamedTuple):
    """What the client gets: the id to show to the person, the code to keep, when both end."""

    id: str
    code: str
    expires_at: float


class Refused(Exception):
    """Why a code is worth no token: `pending`, `denied`, `mismatch`, `unknown` or `gone`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PairingService:
    """The two sides of pairing over one state: `ask` and `exchange` for a client without a
    token, the rest for the person who decides."""

    def __init__(
        self,
        pairings: PairingStore,
        tokens: Tokens,
        *,
        records: Records,
        tell: Callable[[str, Mapping[str, str]], None],
        owners: Callable[[], Sequence[str]] = tuple,
        shared: SharedStore | None = None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        """`owners` gives the names of the operators, one of whom owns each token that is granted
        as soon as there is one."""
        self._pairings = pairings
        self._tokens = tokens
        self._records = records
        self._owners = owners
        self._tell = tell
        self._clock = clocks.wall
        self._deadlines = Deadlines(clocks)
        self._lockout = Lockout(FAILURES, WINDOW_S, LOCK_S, shared=shared, kind="pairing")

    # For clients, who have no token yet

    def ask(self, client: str, challenge: str, wanted: TokenRights, address: str) -> Asked:
        """Take a request, which a person has `CODE_S` seconds to answer.

        Raises: TidegateError ARGUMENT_INVALID, LIMIT_RATE if too many wait, AUTH_LOCKED_OUT,
        STATE_FAILED.
        """
        now = self._clock()
        self._lockout.check(address, now)
        check_token_name(client)
        _check_shown(client)
        if not _CHALLENGE.fullmatch(challenge):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The challenge is not 43 characters of base64url.",
                hint="Send the unpadded base64url of the verifier's SHA-256.",
            )
        _check_rights(wanted)
        self._pairings.forget(now - KEPT_S)
        code = urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
        pairing = Pairing(_new_id(), client, address, challenge, wanted, now, now + CODE_S)
        if not self._pairings.add(
            pairing, _digest(code), most=MOST, most_of_origin=MOST_OF_ADDRESS, origin=origin
        ):
            self._tell("pairing.refused", {"address": address, "client": client})
            raise TidegateError(
                Code.LIMIT_RATE,
                "Too many pairing requests are pending.",
                hint="Ask the operator to answer them: `tidegate pair list` shows them.",
                retry_after_s=CODE_S,
            )
        self._tell("pairing.asked", {"id": pairing.id, "client": client, "address": address})
        return Asked(pairing.id, code, pairing.expires_at)

    def exchange(self, code: str, verifier: str, address: str) -> str:
        """The token for an approved code. It works once; a wrong verifier spoils the code.

        Raises: Refused; TidegateError ARGUMENT_INVALID, AUTH_LOCKED_OUT, AUDIT_UNAVAILABLE,
        STATE_FAILED.
        """
        from hmac import compare_digest  # few runs pair a client

        now = self._clock()
        self._lockout.check(address, now)
        if not _VERIFIER.fullmatch(verifier):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The verifier is not 43 to 128 unreserved characters.",
                hint="Send the verifier that the challenge was made from.",
            )
        pairing = self._pairings.by_digest(_digest(code)) if _CODE.fullmatch(code) else None
        if pairing is None:
            raise self._failed("unknown", address, now)
        if not compare_digest(challenge_of(verifier), pairing.challenge):
            if pairing.state in ("pending", "approved"):
                self._pairings.end(pairing.id, pairing.state, "burnt")
            raise self._failed("mismatch", address, now, pairing.id)
        if pairing.state == "denied":
            raise Refused("denied")
        if self._is_over(pairing, now) or pairing.state in ("exchanged", "burnt"):
            raise Refused("gone")
        if pairing.state == "pending" or pairing.granted is None:
            raise Refused("pending")
        if not self._pairings.end(pairing.id, "approved", "exchanged"):
            raise Refused("gone")
        self._records.before("pairing.exchanged", {"id": pairing.id, "address": address})
        plaintext, _ = self._tokens.create(pairing.token_name, pairing.granted)
        return plaintext

    def _is_over(self, pairing: Pairing, now: float) -> bool:
        """Whether the time of a request is over, or its beginning is not known to the clock."""
        if is_ahead(pairing.expires_at, now + CODE_S):
            return True
        return self._deadlines.has_passed(pairing.id, pairing.expires_at)

    def _failed(self, reason: str, address: str, now: float, id: str = "") -> Refused:
        self._tell("pairing.failed", {"address": address, "reason": reason, "id": id})
        if self._lockout.failed(address, now):
            self._tell("pairing.locked_out", {"address": address})
        return Refused(reason)

    # For the person who decides

    def waiting(self) -> tuple[Pairing, ...]:
        """The requests that can be answered now, oldest first."""
        now = self._clock()
        return tuple(
            each
            for each in self._pairings.list()
            if each.state == "pending" and not self._is_over(each, now)
        )

    def approve(
        self,
        id: str,
        granted: TokenRights | None = None,
        name: str | None = None,
        *,
        records: Records | None = None,
    ) -> Pairing:
        """Grant a request: what it wants, or `granted` instead. The client then has `CODE_S`
        seconds to fetch the token, which is named `name` or as the client is. Without an owner in
        `granted` it is the only operator's, if there is one.

        Raises: TidegateError ARGUMENT_INVALID if none waits under that id, if `granted` has a wider
        scope than was asked for, if the name is taken, or if there is no such operator, or more
        than one and none was named; AUDIT_UNAVAILABLE, STATE_FAILED.
        """
        pairing = self.find(id)
        now = self._clock()
        granted = granted or pairing.wanted
        granted = structs.replace(granted, owner=self._owner(granted.owner))
        _refuse_more(granted, pairing.wanted)
        name = name or pairing.client
        check_token_name(name)
        self._tokens.refuse_taken(name)
        details = {"id": pairing.id, "token": name, **described(granted)}
        (records or self._records).before("pairing.approved", details)
        if not self._pairings.resolve(
            pairing.id,
            "approved",
            now,
            expires_at=now + CODE_S,
            token_name=name,
            granted=granted,
        ):
            raise _none(id)
        return structs.replace(pairing, state="approved", token_name=name, granted=granted)

    def deny(self, id: str, *, records: Records | None = None) -> Pairing:
        """Refuse a request. Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED."""
        pairing = self.find(id)
        if not self._pairings.resolve(pairing.id, "denied", self._clock()):
            raise _none(id)
        details = {"id": pairing.id, "client": pairing.client}
        (records or self._records).after("pairing.denied", details)
        return pairing

    def _owner(self, name: str) -> str:
        names = self._owners()
        if not name and len(names) > 1:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The token needs an owner, and there is more than one operator.",
                hint="Name the operator whose client it is.",
            )
        found = [each for each in names if not name or each.casefold() == name.casefold()]
        if name and not found:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is no operator `{name[:80]}`.",
                hint="Name the operator whose client it is.",
            )
        return found[0] if found else ""

    def find(self, id: str) -> Pairing:
        """The request that waits under that id, however it is written. Raises: TidegateError
        ARGUMENT_INVALID, STATE_FAILED."""
        wanted = id.upper().replace("-", "")
        for pairing in self.waiting():
            if pairing.id.replace("-", "") == wanted:
                return pairing
        raise _none(id)


def make_verifier() -> str:
    """A fresh verifier: 256 random bits in base64url."""
    return urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636, section 4.2)."""
    digest = sha256(verifier.encode("ascii")).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def described(rights: TokenRights) -> dict[str, str]:
    """Rights as few words, for the record."""
    details = rights_in_words(rights)
    if rights.owner:
        details["owner"] = rights.owner
    if rights.max_rows_changed is not None:
        details["max_rows_changed"] = str(rights.max_rows_changed)
    if rights.lasts_s is not None:
        details["lasts_s"] = str(round(rights.lasts_s))
    return details


def more_than_wanted(wanted: TokenRights, granted: TokenRights) -> tuple[str, ...]:
    """The names of the rights that are granted and were not asked for."""
    return widened_rights(client_of("", wanted), client_of("", granted))


def client_of(name: str, rights: TokenRights) -> Actor:
    """Who would hold a token with these rights. It holds none yet."""
    return Actor(
        f"pairing:{name}",
        name,
        rights.scope,
        rights.sources,
        tags=rights.tags,
        tables=rights.tables,
        expires_at=rights.lasts_s,
        owner=rights.owner,
        max_rows_changed=rights.max_rows_changed,
    )


def _check_rights(rights: TokenRights) -> None:
    for names in (rights.sources, rights.tags, rights.tables):
        if names is None:
            continue
        if len(names) > _NAMES or not all(_NAME.fullmatch(name) for name in names):
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"Sources, tags and tables are up to {_NAMES} names each."
            )
        for name in names:
            _check_shown(name)


def _check_shown(text: str) -> None:
    """What a stranger sends is shown to the person who decides: it must look like what it is."""
    if not text.isprintable():
        raise TidegateError(
            Code.ARGUMENT_INVALID, "A name holds characters that are not printable."
        )


def _refuse_more(granted: TokenRights, wanted: TokenRights) -> None:
    """A person may narrow what was asked for: a right that was not asked for is a mistake."""
    if not wanted.scope.covers(granted.scope):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The client asked for {wanted.scope.value}, which is less than {granted.scope.value}.",
            hint="Grant what was asked for or less.",
        )


def _new_id() -> str:
    letters = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in os.urandom(8))
    return f"{letters[:4]}-{letters[4:]}"


def _digest(code: str) -> bytes:
    return sha256(code.encode("ascii")).digest()


def _none(id: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"There is no pending pairing request `{id[:40]}`.",
        hint="`tidegate pair list` shows the pending requests.",
    )
