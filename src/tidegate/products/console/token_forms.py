"""Tokens in the console: made, shown once, given other rights, revoked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.identity.tokens import Tokens, parse_expiry, widened_rights
from tidegate.model.actors import Actor, Scope
from tidegate.model.data_rules import DataRules
from tidegate.model.sources import Source
from tidegate.policy.data_rules import rules_by_name
from tidegate.products.console.admins import (
    Consent,
    administered,
    check_may_give,
    is_admin,
    may_give,
)
from tidegate.products.console.sign_in import actor_of
from tidegate.store.records import TokenEntry, TokenRights

MOST_ENDED = 100
"""Tokens that are revoked or expired, and still listed."""

Names = Annotated[list[str], msgspec.Meta(max_length=2_000)]
Rows = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class Rights(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a token will have, in the body of a request; of the lists None means all."""

    scope: Scope
    sources: Names | None = None
    tags: Names | None = None
    tables: Names | None = None
    max_rows_changed: Rows | None = None
    passphrase: str = ""

    def lists(self) -> dict[str, frozenset[str] | None]:
        """The allowlists."""
        return {
            name: None if value is None else frozenset(value)
            for name, value in (
                ("sources", self.sources),
                ("tags", self.tags),
                ("tables", self.tables),
            )
        }


class MakeToken(Rights, frozen=True, kw_only=True):
    """The body of `access/tokens`. `expires` is a time span or `never`."""

    name: str
    expires: str = "90d"
    owner: str = ""


class ChangeToken(Rights, frozen=True, kw_only=True):
    """The body of `change`, with all rights. `version` is that of the token that was shown;
    `expires` is a time span from now, `never`, or `keep`."""

    version: str
    expires: str | Literal["keep"] = "keep"


class TokenForms:
    """What an operator may see and do of tokens."""

    def __init__(
        self,
        tokens: Tokens,
        operators: Operators,
        sources: Callable[[], Sequence[Source]],
        consent: Consent,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._operators = operators
        self._sources = sources
        self._consent = consent
        self._clock = clock

    def has_token(self) -> bool:
        """Whether an agent has a token that was not revoked. Reads the state."""
        return any(entry.revoked_at is None for entry in self._tokens.list())

    def list(self, signed_in: SignedIn) -> list[dict[str, Any]]:
        """The tokens that the operator may change, active ones first, then the last that ended."""
        now = self._clock()
        seen = [
            each for each in self._tokens.list() if may_give(signed_in, each.sources, each.tags)
        ]
        active = [each for each in seen if state_of(each, now) == "active"]
        ended = [each for each in seen if state_of(each, now) != "active"]
        return [self._shown(each, now) for each in [*active, *ended[: -MOST_ENDED - 1 : -1]]]

    def find(self, id: str, signed_in: SignedIn) -> TokenEntry:
        """A token that the operator may change. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID if there is none, or it has ended."""
        if administered(signed_in) == frozenset():
            check_may_give(signed_in, None, None)
        found = next((each for each in self._tokens.list() if each.id == id), None)
        if found is None or found.revoked_at is not None:
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such token, or it is revoked")
        check_may_give(signed_in, found.sources, found.tags)
        return found

    def make(self, body: MakeToken, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Make a token: it is in this answer and nowhere else.

        Raises: TidegateError POLICY_DENIED, OPERATOR_CONSENT, ARGUMENT_INVALID, SOURCE_UNKNOWN,
        AUDIT_UNAVAILABLE, STATE_FAILED.
        """

        def check(by: SignedIn) -> None:
            check_may_give(by, body.sources, body.tags)
            self.check_hidden(by, body.name, body.sources)

        check(signed_in)
        self.check_names(body.sources, body.tags)
        owner = self.owner(body.owner, signed_in)
        expires_at = parse_expiry(body.expires, self._clock())
        signed_in = self._consent.require(signed_in, body.passphrase, address, check)
        lists = body.lists()
        rights = TokenRights(
            body.scope,
            lists["sources"],
            lists["tags"],
            tables=lists["tables"],
            max_rows_changed=body.max_rows_changed,
            owner=owner,
            maker=signed_in.operator.person,
        )
        plaintext, entry = self._tokens.create(
            body.name,
            rights,
            expires_at=expires_at,
            records=self._consent.records(signed_in, address),
        )
        return {"secret": plaintext, "token": self._shown(entry, self._clock())}

    def change(
        self, id: str, body: ChangeToken, signed_in: SignedIn, address: str
    ) -> dict[str, Any]:
        """Give a token other rights; more of them need the passphrase.

        Raises: TidegateError ACCESS_CHANGED if it is no longer the one that was shown; as `make`.
        """
        was = self.find(id, signed_in)
        if version_of(was) != body.version:
            raise TidegateError(
                Code.ACCESS_CHANGED, f"The token `{was.name}` has other rights by now."
            )
        self.check_names(body.sources, body.tags)
        expires_at = was.expires_at
        if body.expires != "keep":
            expires_at = parse_expiry(body.expires, self._clock())
        now = structs.replace(
            was,
            scope=body.scope,
            expires_at=expires_at,
            max_rows_changed=body.max_rows_changed,
            **body.lists(),
        )

        def check(by: SignedIn) -> None:
            check_may_give(by, was.sources, was.tags)
            check_may_give(by, now.sources, now.tags)
            self.check_hidden(by, now.name, now.sources)

        check(signed_in)
        if now == was:
            return self._shown(was, self._clock())
        if widened_rights(was, now):
            signed_in = self._consent.require(signed_in, body.passphrase, address, check)
        self._tokens.change(now, was, records=self._consent.records(signed_in, address))
        return self._shown(now, self._clock())

    def revoke(self, id: str, signed_in: SignedIn, address: str) -> None:
        """Revoke a token by its id. Works without a record. Raises: TidegateError POLICY_DENIED,
        ARGUMENT_INVALID."""
        found = self.find(id, signed_in)
        records = self._consent.records(signed_in, address)
        self._tokens.revoke(found.name, id=found.id, records=records)

    def owner(self, name: str, signed_in: SignedIn) -> str:
        """The owner of a token that this operator gives: itself, if it names none; an admin of some
        sources owns what it gives. Raises: TidegateError ARGUMENT_INVALID, POLICY_DENIED."""
        found = self._operators.find(name).name if name else signed_in.operator.name
        if found != signed_in.operator.name and not is_admin(signed_in):
            raise TidegateError(
                Code.POLICY_DENIED,
                "An admin of some sources owns the tokens that it gives.",
                hint="Leave the owner as it is.",
            )
        return found

    def check_hidden(self, signed_in: SignedIn, name: str, sources: Collection[str] | None) -> None:
        """An admin of some sources gives no more than it has: what is hidden there from itself is
        hidden from the token, too, and a token's name is not one that the settings give a role.

        Raises: TidegateError POLICY_DENIED.
        """
        if is_admin(signed_in):
            return
        token = Actor("", name, Scope.READ_ONLY)
        for source in self._sources():
            if source.name not in (sources or ()):
                continue
            own = rules_by_name(actor_of(signed_in, source.name), source) or DataRules()
            its = rules_by_name(token, source) or DataRules()
            reads_more = not {*own.masks, *own.filters} <= {*its.masks, *its.filters}
            role = None if source.run_as is None else dict(source.run_as.roles).get(name)
            if reads_more or role is not None:
                raise TidegateError(
                    Code.POLICY_DENIED,
                    f"A token of this name reads on {source.name} what is hidden from you, or has a"
                    " database role of its own there.",
                    hint="Use another name, or ask an admin of all sources.",
                )

    def check_names(self, sources: Collection[str] | None, tags: Collection[str] | None) -> None:
        """Raises: TidegateError SOURCE_UNKNOWN, ARGUMENT_INVALID: a misspelt name would grant
        nothing without a message."""
        if not sources and not tags:
            if sources is not None or tags is not None:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    "The list of sources is empty.",
                    hint="Name a source or a tag, or take all sources.",
                )
            return
        known = self._sources()
        names = {source.name for source in known}
        all_tags = {tag for source in known for tag in source.tags}
        for name in sorted(sources or ()):
            if name not in names:
                raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {name[:80]!r}")
        for tag in sorted(tags or ()):
            if tag not in all_tags:
                raise TidegateError(Code.ARGUMENT_INVALID, f"No source has the tag {tag[:80]!r}")

    def _shown(self, entry: TokenEntry, now: float) -> dict[str, Any]:
        file = self._tokens.in_file(entry)
        active = entry.revoked_at is None
        return {
            "name": entry.name,
            "id": entry.id,
            "prefix": entry.prefix,
            "scope": entry.scope.value,
            **{name: _sorted(getattr(entry, name)) for name in ("sources", "tags", "tables")},
            "max_rows_changed": entry.max_rows_changed,
            "proxy": entry.proxy,
            "owner": entry.owner,
            "created_at": entry.created_at,
            "expires_at": entry.expires_at,
            "last_used_at": entry.last_used_at,
            "revoked_at": entry.revoked_at,
            "state": state_of(entry, now),
            "version": version_of(entry),
            "may": {
                "change": active and file is None,
                "revoke": active and file is None,
                "why_not": "" if file is None else f"It is in the file {file}: change it there.",
            },
        }


def state_of(entry: TokenEntry, now: float) -> Literal["active", "expired", "revoked"]:
    """Whether a token counts."""
    if entry.revoked_at is not None:
        return "revoked"
    return "expired" if entry.expires_at is not None and entry.expires_at <= now else "active"


def version_of(entry: TokenEntry) -> str:
    """A digest of a token's rights: another one means that they were changed."""
    rights = (
        entry.id,
        entry.scope.value,
        *(_sorted(each) for each in (entry.sources, entry.tags, entry.tables)),
        entry.expires_at,
        entry.max_rows_changed,
    )
    return sha256(msgspec.json.encode(rights)).hexdigest()[:16]


def what_may_be_made(signed_in: SignedIn) -> dict[str, Any]:
    """Whether the operator may make tokens, of which sources (None: any), and why not."""
    own = administered(signed_in)
    return {
        "make": own is None or bool(own),
        "of": _sorted(own),
        "why_not": "" if own is None or own else "Only an admin may make tokens.",
    }


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
