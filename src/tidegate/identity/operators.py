"""Operators: the people who answer and look, how they sign in, and what each may do.

A passphrase is kept as a salted scrypt hash, as that of `operator_passphrase`. A link signs its
operator in once, and a session that began with one may look; its first yes needs the passphrase. A
session ends after half an hour without a request and twelve hours in any case. Its secret is kept
by the browser in a cookie, and here as a digest.
"""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import Lockout
from tidegate.identity.operator_passphrase import SHORTEST, fits, hash_passphrase
from tidegate.model.actors import Role, RoleGrant, holds
from tidegate.model.deadlines import AHEAD_S, CLOCKS, Clocks, Deadlines, is_ahead
from tidegate.store.access import OperatorStore
from tidegate.store.records import OPERATOR, OperatorEntry, OperatorSession

LINK_S = 120.0
INVITATION_S = 3_600.0
IDLE_S = 1_800.0
SESSION_S = 43_200.0
"""How long a link, the first link of a new operator, a quiet session and any session last, in
seconds."""
MOST_NAME = 64

_NAME = re.compile(r"[\w][\w .@+-]*")
_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
"""The scripts with letters that look like those of another one."""
_TOUCH_S = 15.0

Note = Callable[[str, str, Mapping[str, str]], None]
"""Puts on record what happened: a name, who did it, details."""


class SignedIn(NamedTuple):
    """An operator in one of its sessions."""

    operator: OperatorEntry
    session: OperatorSession

    @property
    def actor_id(self) -> str:
        """The id under which it acts, on record."""
        return OPERATOR + self.operator.name

    def may(self, role: Role, source: str) -> bool:
        """Whether it has this role, or a wider one, on the source of that name."""
        return holds(self.operator.roles, role, source)


class Operators:
    """The operators of one state. `note` is called before what gives rights, and `note_done` after
    what is done in any case; `note_anonymous` records what a visitor without an account did.
    `after_a_lost_link` is what a person can do whose link signs in no more."""

    def __init__(
        self,
        store: OperatorStore,
        *,
        note: Note,
        note_done: Note,
        note_anonymous: Callable[[str, Mapping[str, str]], None],
        lockout: Lockout | None = None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self.after_a_lost_link = (
            "Sign in by name and passphrase, or run `tidegate console` for a new link."
        )
        self._store = store
        self._note = note
        self._note_done = note_done
        self._note_anonymous = note_anonymous
        self._lockout = lockout or Lockout()
        self._clock = clocks.wall
        self._deadlines = Deadlines(clocks)

    # Accounts

    def list(self) -> tuple[OperatorEntry, ...]:
        """All operators by name."""
        return self._store.list()

    def find(self, name: str) -> OperatorEntry:
        """The operator of that name, in any case of its letters.

        Raises: TidegateError ARGUMENT_INVALID if there is none.
        """
        for operator in self._store.list():
            if operator.name.casefold() == name.casefold():
                return operator
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no operator `{name}`.",
            hint="`tidegate operator list` shows them, `tidegate operator add NAME` adds one.",
        )

    def add(self, name: str, passphrase: str, roles: tuple[RoleGrant, ...], by: str) -> None:
        """Add an operator. Raises: TidegateError ARGUMENT_INVALID, AUDIT_UNAVAILABLE."""
        salt, hashed = _hashed(passphrase)
        self._add(name, salt, hashed, roles, by)

    def invite(
        self, name: str, roles: tuple[RoleGrant, ...], by: SignedIn, details: Mapping[str, str]
    ) -> str:
        """Add an operator without a passphrase; the secret of a link that signs it in once, within
        `INVITATION_S` seconds, so that it can set one. Raises: as `add`."""
        inviter = by.operator.person
        operator = self._add(name, b"", b"", roles, by.actor_id, details, inviter)
        return self._make_link(operator, INVITATION_S)

    def invite_again(self, name: str, by: SignedIn, details: Mapping[str, str]) -> str:
        """Another link, by another inviter, for an operator without a passphrase: a link
        for one with a passphrase would sign in someone else. The links and sessions before end, so
        that the account is no one else's who invited it. Raises: TidegateError ARGUMENT_INVALID,
        AUDIT_UNAVAILABLE."""
        operator = self.find(name)
        if operator.hash:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"{operator.name} has a passphrase, and signs in with it.",
                hint="At the command line, `tidegate operator passphrase` sets another one.",
            )
        given = {"operator": operator.name, **details}
        self._note("console.link_made", by.actor_id, given)
        changed = structs.replace(operator, inviter=by.operator.person)
        check = _checked_invitation(operator)
        self._store.change(changed, ("inviter",), check, ends_access=True)
        return self._make_link(changed, INVITATION_S)

    def set_first_passphrase(self, signed_in: SignedIn, passphrase: str) -> SignedIn:
        """The session of an operator that had no passphrase, with this one, as if typed now.

        Raises: TidegateError ARGUMENT_INVALID if it is too short, OPERATOR_CONSENT if there is one,
        AUDIT_UNAVAILABLE.
        """
        salt, hashed = _hashed(passphrase)
        now, operator = self._clock(), signed_in.operator
        check = _checked_invitation(operator)
        check(self._store.list())
        details = {"operator": operator.name, "session": signed_in.session.id}
        self._note("operator.passphrase_changed", signed_in.actor_id, details)
        operator = structs.replace(operator, salt=salt, hash=hashed)
        self._store.change(operator, ("salt", "hash"), check)
        self._store.touch_session(signed_in.session.id, now, now)
        return SignedIn(operator, structs.replace(signed_in.session, confirmed_at=now))

    def _add(
        self,
        name: str,
        salt: bytes,
        hashed: bytes,
        roles: tuple[RoleGrant, ...],
        by: str,
        details: Mapping[str, str] = MappingProxyType({}),
        inviter: str = "",
    ) -> OperatorEntry:
        self._check_name(name)
        given = {"operator": name, "roles": roles_text(roles), **details}
        self._note("operator.added", by, given)
        id, now = os.urandom(8).hex(), self._clock()
        operator = OperatorEntry(id, name, salt, hashed, roles, now, inviter, by)
        self._store.add(operator)
        return operator

    def _check_name(self, name: str) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a name that could be taken for another one: a
        yes goes on record under it, and tokens have their owner by it."""
        if len(name) > MOST_NAME or not _NAME.fullmatch(name) or _plain(name) != name:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"An operator's name has up to {MOST_NAME} letters, digits, single spaces and . @ +"
                " - _ and begins with a letter or digit.",
                hint="Write it without accents of their own, and without a space at its end.",
            )
        if len(_ALIKE.intersection(map(_script_of, name))) > 1:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The name `{name}` has letters of several scripts that look alike.",
                hint="Write it in one script.",
            )
        for each in self._store.list():
            if _plain(each.name).casefold() == name.casefold():
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an operator `{each.name}`.",
                    hint="Use another name; `tidegate operator list` shows those there are.",
                )

    def set_roles(
        self,
        name: str,
        roles: tuple[RoleGrant, ...],
        by: str,
        *,
        was: tuple[RoleGrant, ...] | None = None,
        details: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Give an operator these roles in place of those before, which are `was` where that is
        given; they count at once.

        Raises: TidegateError ARGUMENT_INVALID if there is none, AUDIT_UNAVAILABLE; where `was` is
        given, ACCESS_CHANGED, and OPERATOR_CONSENT if no admin of all sources would be left.
        """
        operator = self.find(name)
        given = {"operator": operator.name, "roles": roles_text(roles), **details}
        check = None
        if was is not None:
            check = _checked_change(operator, was, roles)
            check(self._store.list())  # before it goes on record
        self._note("operator.roles_changed", by, given)
        changed = structs.replace(operator, roles=roles, roles_by=by)
        self._store.change(changed, ("roles", "roles_by"), check)

    def set_passphrase(self, name: str, passphrase: str, by: str) -> None:
        """Give an operator another passphrase at the command line, and end its sessions and links.
        The operator who invited it has no part in the account any more."""
        operator = self.find(name)
        salt, hashed = _hashed(passphrase)
        self._note("operator.passphrase_changed", by, {"operator": operator.name})
        changed = structs.replace(operator, salt=salt, hash=hashed, inviter="")
        self._store.change(changed, ("salt", "hash", "inviter"), ends_access=True)

    def remove(
        self,
        name: str,
        by: str,
        *,
        keeps_admin: bool = False,
        details: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Remove an operator with its sessions; with `keeps_admin` not if no admin of all sources
        would be left, or one operator alone, whose yes to its own calls would count from then on.
        Raises: TidegateError ARGUMENT_INVALID, OPERATOR_CONSENT."""
        operator = self.find(name)
        check = _checked_change(operator, None, ()) if keeps_admin else None
        if self._store.remove(operator.id, check):
            self._note_done("operator.removed", by, {"operator": operator.name, **details})

    # Signing in

    def make_link(self, name: str, by: str) -> str:
        """The secret of a link that signs the operator in, once, within `LINK_S` seconds.

        Raises: TidegateError ARGUMENT_INVALID, AUDIT_UNAVAILABLE.
        """
        operator = self.find(name)
        self._note("console.link_made", by, {"operator": operator.name})
        return self._make_link(operator, LINK_S)

    def _make_link(self, operator: OperatorEntry, lasts_s: float) -> str:
        now, secret = self._clock(), secrets.token_urlsafe(24)
        self._store.add_link(_digest(secret), operator.id, now + lasts_s, now)
        self._deadlines.has_passed(_digest(secret), now + lasts_s)
        return secret

    def sign_in_by_link(self, secret: str, address: str, browser: str) -> tuple[SignedIn, str]:
        """A new session and its secret. Raises: TidegateError AUTH_INVALID.

        No lockout counts here: a link cannot be guessed, and an operator who is locked out by the
        guesses of others gets in by one.
        """
        now = self._clock()
        digest = _digest(secret)
        id = self._store.use_link(digest, now, now + INVITATION_S + AHEAD_S)
        over = id is None or self._deadlines.is_over(digest)
        operator = None if id is None or over else self._by_id(id)
        if operator is None:
            details = {"address": address, "by": "link", "locked": "false"}
            self._note_anonymous("console.sign_in_failed", details)
            raise TidegateError(
                Code.AUTH_INVALID,
                "The link was used before, has expired, or is not of this server.",
                hint=self.after_a_lost_link,
            )
        return self._begin(operator, "link", address, browser)

    def sign_in(
        self, name: str, passphrase: str, address: str, browser: str
    ) -> tuple[SignedIn, str]:
        """A new session and its secret. Takes some 0.1 s of CPU, for a name that is not there, too.

        Raises: TidegateError AUTH_INVALID, AUTH_LOCKED_OUT.
        """
        now = self._clock()
        self._check_lockout(address, name, now)
        operator = next(
            (each for each in self._store.list() if each.name.casefold() == name.casefold()), None
        )
        salt, hashed = b"no operator here", b""
        if operator is not None and operator.hash:
            salt, hashed = operator.salt, operator.hash
        if not fits(passphrase, salt, hashed) or operator is None:
            self._failed(address, name, "passphrase")
            raise TidegateError(
                Code.AUTH_INVALID,
                "The name or the passphrase is wrong.",
                hint="`tidegate operator passphrase NAME` sets another one.",
            )
        return self._begin(operator, "passphrase", address, browser)

    def _begin(
        self,
        operator: OperatorEntry,
        by: Literal["link", "passphrase"],
        address: str,
        browser: str,
    ) -> tuple[SignedIn, str]:
        now, secret = self._clock(), secrets.token_urlsafe(32)
        session = OperatorSession(
            *(os.urandom(8).hex(), operator.id, by, now, now, now + SESSION_S),
            confirmed_at=now if by == "passphrase" else None,
            address=address,
            browser=browser[:200],
        )
        details = {"session": session.id, "by": by, "address": address}
        self._note("console.signed_in", OPERATOR + operator.name, details)
        self._store.add_session(session, _digest(secret))
        return SignedIn(operator, session), secret

    def find_session(self, secret: str) -> SignedIn | None:
        """Who is signed in with this secret; None if that has ended. Keeps the session going."""
        session = self._store.session(_digest(secret)) if secret else None
        now = self._clock()
        if session is None or not self._is_live(session, now):
            return None
        operator = self._by_id(session.operator)
        if operator is None:
            return None
        if now - session.seen_at >= _TOUCH_S:
            self._store.touch_session(session.id, now, session.confirmed_at)
        return SignedIn(operator, session)

    def live(self) -> dict[str, SignedIn]:
        """Who is signed in now, by the id of the session. Extends no session."""
        operators = {operator.id: operator for operator in self._store.list()}
        now = self._clock()
        return {
            each.id: SignedIn(operators[each.operator], each)
            for each in self._store.sessions()
            if self._is_live(each, now) and each.operator in operators
        }

    def _is_live(self, session: OperatorSession, now: float) -> bool:
        """Whether a session has not ended by `now`, nor by the seconds that went by."""
        id, has_passed = session.id, self._deadlines.has_passed
        ended = has_passed(id, min(session.ends_at, session.created_at + SESSION_S))
        is_idle = has_passed(f"use of {id}", session.seen_at + IDLE_S)
        return not (ended or is_idle or is_ahead(session.seen_at, now))

    def confirm(self, signed_in: SignedIn, passphrase: str, address: str) -> SignedIn:
        """The session, in which the passphrase was typed now. Takes some 0.1 s of CPU.

        Guesses count by session, so that those of others lock no operator out of its own; too many
        end the session.
        Raises: TidegateError OPERATOR_CONSENT if it is wrong.
        """
        operator, now = signed_in.operator, self._clock()
        if not operator.hash:
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "You have set no passphrase yet; nothing was changed.",
                hint="Set one under Access in the console.",
            )
        if not fits(passphrase, operator.salt, operator.hash):
            ended = self._lockout.failed(f"session {signed_in.session.id}", now)
            if ended:
                self._store.end_sessions(id=signed_in.session.id)
            details = {"address": address, "by": "confirmation", "locked": str(ended).lower()}
            self._note_anonymous("console.sign_in_failed", details)
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "That is not your passphrase; nothing was changed.",
                hint="`tidegate operator passphrase NAME` sets another one.",
            )
        self._store.touch_session(signed_in.session.id, now, now)
        return SignedIn(operator, structs.replace(signed_in.session, seen_at=now, confirmed_at=now))

    def sign_out(self, signed_in: SignedIn, *, everywhere: bool = False) -> None:
        """End the session, or all of its operator. Works without a record."""
        if everywhere:
            self._store.end_sessions(operator=signed_in.operator.id)
        else:
            self._store.end_sessions(id=signed_in.session.id)
        details = {"session": signed_in.session.id, "everywhere": str(everywhere).lower()}
        self._note_done("console.signed_out", signed_in.actor_id, details)

    def sessions(self) -> tuple[tuple[OperatorSession, str], ...]:
        """The sessions that have not ended, each with the name of its operator."""
        return tuple((session, operator.name) for operator, session in self.live().values())

    def end_session(self, id: str, by: str) -> bool:
        """End the session of that id; False if there was none. Works without a record."""
        ended = self._store.end_sessions(id=id) > 0
        if ended:
            self._note_done("console.session_ended", by, {"session": id})
        return ended

    def _by_id(self, id: str) -> OperatorEntry | None:
        return next((each for each in self._store.list() if each.id == id), None)

    def _check_lockout(self, address: str, name: str, now: float) -> None:
        self._lockout.check(address, now)
        self._lockout.check(_account(name), now)

    def _failed(self, address: str, name: str, by: str) -> None:
        now = self._clock()
        locked = self._lockout.failed(address, now)
        if name:
            locked = self._lockout.failed(_account(name), now) or locked
        details = {"address": address, "by": by, "locked": str(locked).lower()}
        self._note_anonymous("console.sign_in_failed", details)


def _checked_change(
    operator: OperatorEntry, was: tuple[RoleGrant, ...] | None, roles: tuple[RoleGrant, ...]
) -> Callable[[Collection[OperatorEntry]], None]:
    """Refuses to give the operator these roles, none for one that is removed, where it has others
    than `was`, or where no admin of all sources would be left."""

    def check(before: Collection[OperatorEntry]) -> None:
        now = next((each for each in before if each.id == operator.id), None)
        if now is None or (was is not None and frozenset(now.roles) != frozenset(was)):
            raise TidegateError(
                Code.ACCESS_CHANGED,
                f"{operator.name} was removed, or has other roles by now; nothing was changed.",
            )
        if not roles and operator.hash and sum(bool(each.hash) for each in before) == 2:
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "One operator alone would be left, who could agree to its own calls; nothing was"
                " changed.",
                hint="At the command line, `tidegate operator remove` removes it.",
            )
        others = [each.roles for each in before if each.id != operator.id and each.hash]
        left = [*others, roles] if operator.hash else others
        if holds(now.roles, "admin", None) and not any(holds(r, "admin", None) for r in left):
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                f"{operator.name} is the last admin of all sources; nothing was changed.",
                hint="Make someone else an admin of all sources first.",
            )

    return check


def _checked_invitation(operator: OperatorEntry) -> Callable[[Collection[OperatorEntry]], None]:
    """Refuses an operator who has a passphrase, or who was invited by someone else meanwhile."""

    def check(before: Collection[OperatorEntry]) -> None:
        now = next((each for each in before if each.id == operator.id), None)
        if now is None or now.hash or now.inviter != operator.inviter:
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "There is a passphrase already, or another invitation; nothing was changed.",
                hint="At the command line, `tidegate operator passphrase` sets another one.",
            )

    return check


def roles_text(roles: Collection[RoleGrant]) -> str:
    """Roles as a person reads them, such as `approver on shop, desk`."""
    return "; ".join(
        grant.role + ("" if grant.sources is None else f" on {', '.join(sorted(grant.sources))}")
        for grant in roles
    )


def _hashed(passphrase: str) -> tuple[bytes, bytes]:
    if len(passphrase) < SHORTEST:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The passphrase is shorter than {SHORTEST} characters.",
            hint="Choose a longer one; nothing was changed.",
        )
    salt = secrets.token_bytes(16)
    return salt, hash_passphrase(passphrase, salt)


def _plain(name: str) -> str:
    """A name without variants of letters and spaces that look the same."""
    return " ".join(unicodedata.normalize("NFKC", name).split())


def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _account(name: str) -> str:
    """The key of an account where failures are counted by address."""
    return f"account {sha256(name.casefold().encode()).hexdigest()[:32]}"


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
