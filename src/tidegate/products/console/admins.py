"""Who may give and take rights in the console, and how that goes on record.

An admin of all sources may give any right. An admin of some may give those on these sources alone:
by their names, since a tag may be given to other sources later. What gives a right needs the
passphrase, typed for it, and its record first; what takes one away needs no record, and no
passphrase unless it is an operator's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Note, Operators, SignedIn
from tidegate.identity.tokens import Records
from tidegate.model.actors import holds
from tidegate.products.console.sign_in import place_of

ONLY_ADMINS = "Only an admin of all sources may do that."


def is_admin(signed_in: SignedIn) -> bool:
    """Whether the operator is an admin of all sources."""
    return holds(signed_in.operator.roles, "admin", None)


def administered(signed_in: SignedIn) -> frozenset[str] | None:
    """The names of the sources that the operator is an admin of; None: all."""
    grants = [grant for grant in signed_in.operator.roles if grant.role == "admin"]
    if any(grant.sources is None for grant in grants):
        return None
    return frozenset(name for grant in grants for name in grant.sources or ())


def may_give(
    signed_in: SignedIn, sources: Collection[str] | None, tags: Collection[str] | None
) -> bool:
    """Whether the operator may give, change and take a right with this allowlist."""
    own = administered(signed_in)
    if own is None:
        return True
    return bool(sources) and not tags and own.issuperset(sources or ())


def check_admin(signed_in: SignedIn) -> None:
    """Raises: TidegateError POLICY_DENIED unless the operator is an admin of all sources."""
    if not is_admin(signed_in):
        raise TidegateError(Code.POLICY_DENIED, ONLY_ADMINS, hint="Ask an admin.")


def check_may_give(
    signed_in: SignedIn, sources: Collection[str] | None, tags: Collection[str] | None
) -> None:
    """Raises: TidegateError POLICY_DENIED unless the operator may give such a right."""
    if may_give(signed_in, sources, tags):
        return
    own = sorted(administered(signed_in) or ())
    if not own:
        raise TidegateError(
            Code.POLICY_DENIED, "Only an admin may do that.", hint="Ask an admin of the sources."
        )
    raise TidegateError(
        Code.POLICY_DENIED,
        f"You are an admin of {', '.join(own)} alone, and this is about more.",
        hint="Name only these sources, and no tags; or ask an admin of all sources.",
    )


class Consent:
    """The passphrase that is typed for what gives a right, and the records of what is done."""

    def __init__(self, operators: Operators, note: Note, note_done: Note) -> None:
        self._operators = operators
        self._note = note
        self._note_done = note_done

    def require(
        self,
        signed_in: SignedIn,
        passphrase: str,
        address: str,
        check: Callable[[SignedIn], None] = check_admin,
    ) -> SignedIn:
        """The session once the passphrase was typed, with the roles that the operator has then;
        `check` gets these before and after. Takes some 0.1 s of CPU.

        Raises: TidegateError OPERATOR_CONSENT if it is missing or wrong, CONSOLE_SIGNED_OUT; as
        `check`.
        """
        check(signed_in)
        if not passphrase:
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "This needs your passphrase; nothing was changed.",
                hint="Type it, and do it again.",
            )
        self._operators.confirm(signed_in, passphrase, address)
        now = self._operators.live().get(signed_in.session.id)
        if now is None:
            raise TidegateError(Code.CONSOLE_SIGNED_OUT, "You are not signed in")
        check(now)
        return now

    def records(self, signed_in: SignedIn, address: str) -> Records:
        """The records of what this operator does now."""
        details = place_of(signed_in, address)

        def before(name: str, more: Mapping[str, str]) -> None:
            self._note(name, signed_in.actor_id, {**more, **details})

        def after(name: str, more: Mapping[str, str]) -> None:
            self._note_done(name, signed_in.actor_id, {**more, **details})

        return Records(before, after)
