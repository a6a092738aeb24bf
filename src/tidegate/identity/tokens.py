"""Tokens: made once, shown once, kept as a digest. Decides who a bearer is, not what it may do.

A token is `tg_` and 32 random bytes in base64url. Its SHA-256 is kept without salt: salt and slow
hashes protect secrets that can be guessed, and 256 random bits cannot be guessed. For the same
reason a lookup by digest leaks nothing by its timing: what is compared is the hash of what the
bearer sent, which it cannot steer towards a stored one.
"""

from __future__ import annotations

import os
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from hashlib import sha256
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import NAME as BRIDGE
from tidegate.identity.builtin_actors import ANONYMOUS, OAUTH, cli, stdio
from tidegate.identity.scram import make_verifier
from tidegate.identity.token_files import ID_PREFIX as FILE_PREFIX
from tidegate.identity.token_files import TokenFiles
from tidegate.model.actors import Actor
from tidegate.store.access import TokenStore
from tidegate.store.records import OPERATOR, TokenEntry, TokenRights
from tidegate.store.write_behind import WriteBehind

__all__ = ["TokenEntry", "Tokens", "parse_expiry"]

PREFIX = "tg_"
"""What every token of ours starts with."""

_PLAINTEXT = PREFIX + r"[A-Za-z0-9_-]{43}"
_NAME = r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,62}[^\s\x00-\x1f\x7f])?"
_PART = r"[^\s:.\x00-\x1f\x7f][^:.\x00-\x1f\x7f]{0,127}"
_TABLE = rf"(?:{_PART}:)?(?:(?:{_PART}\.){{0,2}}{_PART}|(?:{_PART}\.){{1,2}}\*)"
_EXPIRY = r"(\d{1,6})([smhdw])"
_UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
Note = Callable[[str, Mapping[str, str]], None]
"""Puts on record what is about to be done: (name, details). Raises: TidegateError."""


class Records(NamedTuple):
    """Where the doings of a process, or of one person, go on record. `before` goes before what
    gives a right, and `after`, which does not raise, after what takes one away."""

    before: Note
    after: Note


def _note_nothing(name: str, details: Mapping[str, str]) -> None:
    return None


NO_RECORDS = Records(_note_nothing, _note_nothing)
"""Nothing goes on record."""


_LONGEST_S = 100 * 366 * 86_400
_PREFIX_CHARS = 8
_TOUCH_S = 60.0
_TOUCH_DELAY_S = 2.0
_KNOWN_BOUND = 20_000
_TAKEN = frozenset({BRIDGE, ANONYMOUS.name, stdio().name, cli().name})
"""Rules and roles are given by name: a token must not pass for another kind of caller."""


class _Known:
    """A token as it was read at this generation of the rights."""

    __slots__ = ("actor", "expires_at", "generation", "touched_at")

    def __init__(self, entry: TokenEntry, generation: int) -> None:
        self.generation = generation
        self.actor = actor_of_token(entry)
        self.expires_at = _end(entry)
        self.touched_at = entry.last_used_at or 0.0


def actor_of_token(entry: TokenEntry) -> Actor:
    """Who holds the token."""
    return Actor(
        id=entry.id,
        name=entry.name,
        scope=entry.scope,
        sources=entry.sources,
        expires_at=entry.expires_at,
        tags=entry.tags,
        tables=entry.tables,
        proxy=entry.proxy,
        owner=entry.owner,
        maker=entry.maker,
        max_rows_changed=entry.max_rows_changed,
    )


class Tokens:
    """The tokens in `store`. `verify` is for one thread; the rest may be called from any."""

    def __init__(
        self,
        store: TokenStore,
        clock: Callable[[], float] = time.time,
        *,
        records: Records = NO_RECORDS,
        files: TokenFiles | None = None,
    ) -> None:
        """The tokens of `files` count as well; here they are only read."""
        self._store = store
        self._files = files
        self._clock = clock
        self._records = records
        self._known: dict[bytes, _Known] = {}
        self._uses: WriteBehind[tuple[str, float]] = WriteBehind(
            self._note_uses, delay_s=_TOUCH_DELAY_S
        )

    def create(
        self,
        name: str,
        rights: TokenRights,
        *,
        expires_at: float | None = None,
        proxy: bool = False,
        records: Records | None = None,
    ) -> tuple[str, TokenEntry]:
        """Make a token; the plaintext is returned here and never again.

        With `sources`, `tags` or both it sees the sources of these names and with these tags;
        without either it sees every source. With `tables` it may use these alone, each given as
        `table`, `schema.table`, `source:table` or `source:schema.table`. It ends at `expires_at`
        (Unix seconds), or else as its rights say. `proxy` is as in `Actor`.

        Raises: TidegateError ARGUMENT_INVALID if the name or a table's is unfit, an active token
        has the name, or `expires_at` is past; STATE_FAILED.
        """
        now = self._clock()
        check_token_name(name)
        check_tables(rights.tables or ())
        if expires_at is None and rights.lasts_s is not None:
            expires_at = now + rights.lasts_s
        if expires_at is not None and expires_at <= now:
            raise TidegateError(Code.ARGUMENT_INVALID, "The token's expiry is in the past.")
        plaintext = PREFIX + urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
        entry = TokenEntry(
            id=f"tok_{os.urandom(8).hex()}",
            name=name,
            prefix=plaintext[:_PREFIX_CHARS],
            scope=rights.scope,
            sources=rights.sources,
            created_at=now,
            expires_at=expires_at,
            tags=rights.tags,
            tables=rights.tables,
            scram_verifier=make_verifier(plaintext),
            proxy=proxy,
            max_rows_changed=rights.max_rows_changed,
            owner=rights.owner,
            maker=rights.maker,
        )
        self.refuse_taken(name)
        (records or self._records).before("token.created", described(entry))
        self._store.add(entry, sha256(plaintext.encode()).digest())
        return plaintext, entry

    def refuse_taken(self, name: str) -> None:
        """Raises: TidegateError ARGUMENT_INVALID if an active token has the name."""
        now = self._clock()
        for entry in self.list():
            if entry.name == name and entry.revoked_at is None and now < _end(entry):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an active token `{name}`.",
                    hint="Revoke it first, or use another name.",
                )

    def list(self) -> tuple[TokenEntry, ...]:
        """Every token, also expired and revoked ones, oldest first, then those of files. Raises:
        TidegateError STATE_FAILED."""
        return self._store.list() + (() if self._files is None else self._files.entries())

    def in_file(self, entry: TokenEntry) -> str | None:
        """The file that the token is in; None for one of the state."""
        if not entry.id.startswith(FILE_PREFIX) or self._files is None:
            return None
        return str(self._files.file_of(entry.name) or "")

    def holder(self, name: str) -> Actor:
        """Who would hold the active token of that name. Proves nothing: for explaining only.

        Raises: TidegateError ARGUMENT_INVALID if there is none, AUTH_EXPIRED.
        """
        for entry in self.list():
            if entry.name == name and entry.revoked_at is None:
                if self._clock() >= _end(entry):
                    raise TidegateError(Code.AUTH_EXPIRED, f"The token `{name}` has expired.")
                return actor_of_token(entry)
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no active token `{name[:80]}`.",
            hint="`tidegate token list` shows their names.",
        )

    def find(self, name: str) -> TokenEntry:
        """The token of that name that is not revoked, else the newest that was.

        Raises: TidegateError ARGUMENT_INVALID if there is none, STATE_FAILED.
        """
        found = [entry for entry in self.list() if entry.name == name]
        active = [entry for entry in found if entry.revoked_at is None]
        if not found:
            near = get_close_matches(name, {entry.name for entry in self.list()}, 1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else "`tidegate token list` shows their names."
            )
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"There is no token `{name[:80]}`.", hint=hint
            )
        return (active or found)[-1]

    def change(self, entry: TokenEntry, was: TokenEntry, *, records: Records | None = None) -> None:
        """Give a token other rights, in every process that shares the store. Like revoking, what
        only takes rights away needs no record to go on.

        Raises: TidegateError ACCESS_CHANGED if it is revoked or was changed meanwhile,
        ARGUMENT_INVALID if a table's name is unfit or the expiry is past; STATE_FAILED,
        AUDIT_UNAVAILABLE.
        """
        self._refuse_of_file(was.name, was)
        check_tables(entry.tables or ())
        if entry.expires_at is not None and entry.expires_at <= self._clock():
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The token's expiry is in the past.",
                hint="Give it a later one, or end it with `tidegate token revoke`.",
            )
        gives = bool(widened_rights(was, entry))
        before, after = records or self._records
        if gives:
            before("token.changed", described(entry))
        if not self._store.change(entry, was):
            raise TidegateError(
                Code.ACCESS_CHANGED,
                f"The token `{was.name}` was revoked, or changed by another process at the same"
                " time.",
                hint="Look at it, then do it again.",
            )
        if not gives:
            after("token.changed", described(entry))

    def exceeding(self, actors: Iterable[Actor]) -> frozenset[str]:
        """The ids of those actors that hold more than their token grants now, or whose token is
        revoked. Raises: TidegateError STATE_FAILED."""
        entries = {entry.id: entry for entry in self.list()}
        return frozenset(
            actor.id
            for actor in actors
            if (entry := entries.get(actor.id)) is not None
            and (entry.revoked_at is not None or widened_rights(entry, actor))
        )

    def revoke(
        self, name: str, *, id: str | None = None, records: Records | None = None
    ) -> TokenEntry:
        """Revoke the active token of that name permanently, in every process that shares the store;
        with an `id` only if it is that one.

        Raises: TidegateError ARGUMENT_INVALID if there is none, STATE_FAILED.
        """
        entry = self._store.revoke(name, self._clock(), id)
        if entry is None:
            self._refuse_of_file(name)
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is no active token `{name}`.",
                hint="`tidegate token list` shows their names.",
            )
        # Afterwards, unlike what gives a right: nothing may keep a right from being taken away.
        after = (records or self._records).after
        after("token.revoked", {"id": entry.id, "name": entry.name})
        return entry

    def generation(self) -> int:
        """A number that differs after any change of tokens, by any process. Raises: TidegateError
        STATE_FAILED."""
        own = self._store.generation()
        return own if self._files is None else own + self._files.generation()

    def revoked(self, ids: Collection[str]) -> frozenset[str]:
        """Those of `ids` that are tokens and revoked, or no longer in their file. Raises:
        TidegateError STATE_FAILED."""
        revoked = self._store.revoked(ids)
        if self._files is None:
            return revoked
        present = {entry.id for entry in self._files.entries()}
        return revoked | {id for id in ids if id.startswith(FILE_PREFIX) and id not in present}

    def holds(self, bearer: str) -> bool:
        """Whether a bearer is checked here: a token of ours, or one of a file."""
        if bearer.startswith(PREFIX):
            return True
        return self._files is not None and self._files.by_digest(_digest(bearer)) is not None

    def verify(self, plaintext: str) -> Actor:
        """The actor that holds this token. Microseconds if the token was seen before, else it reads
        the state.

        Raises: TidegateError AUTH_INVALID if it is not a token, unknown or revoked, AUTH_EXPIRED,
        STATE_FAILED.
        """
        while (actor := self.known(plaintext)) is None:
            self.load(plaintext)
        return actor

    def known(self, plaintext: str) -> Actor | None:
        """As `verify`, from memory: None if the token has to be loaded first."""
        known = self._known.get(_digest(plaintext))
        if known is None or known.generation != self.generation():
            return None
        now = self._clock()
        if now >= known.expires_at:
            raise TidegateError(Code.AUTH_EXPIRED, "The token has expired.")
        if now - known.touched_at >= _TOUCH_S:
            known.touched_at = now
            self._uses.add((known.actor.id, now))
        return known.actor

    def load(self, plaintext: str) -> None:
        """Read a token, so that it is known until the next change of tokens. From any thread.
        Raises: TidegateError AUTH_INVALID if it is not a token, unknown or revoked,
        STATE_FAILED."""
        # Before the read: what is changed during it makes this worthless.
        generation, digest = self.generation(), _digest(plaintext)
        entry = self._store.by_digest(digest) if re.fullmatch(_PLAINTEXT, plaintext) else None
        if entry is None and self._files is not None:
            entry = self._files.by_digest(digest)
        if entry is None or entry.revoked_at is not None:
            raise TidegateError(Code.AUTH_INVALID, "The token is not valid.")
        if len(self._known) >= _KNOWN_BOUND:
            self._known.clear()
        self._known[digest] = _Known(entry, generation)

    def flush(self) -> None:
        """Write when tokens were last used, which otherwise follows seconds later."""
        self._uses.flush()

    def close(self) -> None:
        """Write what waits and end the background thread; the store stays open."""
        self._uses.close()

    def _refuse_of_file(self, name: str, entry: TokenEntry | None = None) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a token that only its file can change."""
        if entry is not None and not entry.id.startswith(FILE_PREFIX):
            return
        path = None if self._files is None else self._files.file_of(name)
        if path is not None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The token `{name}` is in the file `{path}`.",
                hint="Change the file: running servers follow.",
            )

    def _note_uses(self, uses: list[tuple[str, float]]) -> None:
        self._store.touch(dict(uses))


def _digest(plaintext: str) -> bytes:
    return sha256(plaintext.encode("utf-8", "replace")).digest()


def check_token_name(name: str) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless a token can have the name."""
    if name.lower() in _TAKEN or name.lower().startswith((OAUTH, OPERATOR)):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{name[:40]}` is the name of a caller that holds no token of this kind.",
            hint="Use another name.",
        )
    if not re.fullmatch(_NAME, name) or not name.isprintable():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "A token's name is 1 to 64 printable characters.",
            hint="Name it after the client that will hold it.",
        )


def check_token(name: str, tables: Collection[str]) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless a token can have the name and the tables."""
    check_token_name(name)
    check_tables(tables)


def check_tables(tables: Collection[str]) -> None:
    """Raises: TidegateError ARGUMENT_INVALID unless each can name a table."""
    for table in tables:
        if not re.fullmatch(_TABLE, table):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{table[:80]}` cannot be the name of a table.",
                hint="Write `table`, `schema.table` or `source:table`, without quotes; of cloud"
                " providers `provider.service.resource`, `provider.service.*` or `provider.*`.",
            )


def widened_rights(before: TokenEntry | Actor, after: TokenEntry | Actor) -> tuple[str, ...]:
    """The names of the rights that `after` has and `before` has not. A list that names other
    things counts as more, whatever they are."""
    found: list[str] = []
    if not before.scope.covers(after.scope):
        found.append("scope")
    everything = before.sources is None and before.tags is None
    for name in ("sources", "tags"):
        had, has = getattr(before, name) or frozenset[str](), getattr(after, name)
        if not everything and not (has or frozenset[str]()) <= had:
            found.append(name)
    if not everything and after.sources is None and after.tags is None:
        found.append("sources")
    if before.tables is not None and (after.tables is None or not after.tables <= before.tables):
        found.append("tables")
    if after.proxy and not before.proxy:
        found.append("proxy")
    if _most(after) > _most(before):
        found.append("rows changed")
    if _end(after) > _end(before):
        found.append("expiry")
    return tuple(found)


def _end(entry: TokenEntry | Actor) -> float:
    return float("inf") if entry.expires_at is None else entry.expires_at


def _most(entry: TokenEntry | Actor) -> float:
    return float("inf") if entry.max_rows_changed is None else entry.max_rows_changed


def rights_in_words(rights: TokenEntry | TokenRights) -> dict[str, str]:
    """Scope and allowlists as few words for the record; a list that is not there says nothing."""
    words = {"scope": rights.scope.value}
    lists = {"sources": rights.sources, "tags": rights.tags, "tables": rights.tables}
    words.update((name, " ".join(sorted(of))) for name, of in lists.items() if of is not None)
    return words


def described(entry: TokenEntry) -> dict[str, str]:
    """A token's rights as few words for the record."""
    details = {"id": entry.id, "name": entry.name, **rights_in_words(entry)}
    if entry.owner:
        details["owner"] = entry.owner
    if entry.proxy:
        details["proxy"] = "yes"
    if entry.max_rows_changed is not None:
        details["max_rows_changed"] = str(entry.max_rows_changed)
    if entry.expires_at is not None:
        details["expires_at"] = str(round(entry.expires_at))
    return details


def parse_expiry(text: str, now: float) -> float | None:
    """The time at which a token expires: `30d`, `12h`, `2w`, `90m`, `45s`, or None for `never`.

    Raises: TidegateError ARGUMENT_INVALID.
    """
    if text == "never":
        return None
    found = re.fullmatch(_EXPIRY, text)
    if found is None or int(found[1]) == 0:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{text[:40]}` is not a time span.",
            hint="Write a number and a unit, such as 30d, 12h or 2w, or `never`.",
        )
    span_s = int(found[1]) * _UNIT_S[found[2]]
    if span_s > _LONGEST_S:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{text[:40]}` is more than a hundred years.",
            hint="Write a shorter time, or `never`.",
        )
    return now + span_s
