"""What each caller may do on each source, by verb, with the rule that decides; and whether one
statement of a caller would run. Asks the policy itself; runs nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.gateway.access import AccessDetail, cells_of, detail_of
from tidegate.gateway.gateway import Gateway
from tidegate.identity.operators import SignedIn, roles_text
from tidegate.model.actors import Scope
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Call, Query, ReadRows
from tidegate.model.results import Limits, Page
from tidegate.model.source_settings import Mask, RowFilter, limits_of
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.policy.access_matrix import BY_NAME, VERBS, AccessCell
from tidegate.policy.deciding_settings import DecidingSetting, deciding_settings
from tidegate.policy.explanation import Explanation
from tidegate.policy.rules import ADMINISTRATION
from tidegate.products.console.admins import Consent, administered
from tidegate.products.console.callers import Caller, Callers
from tidegate.products.console.cards import source_fields
from tidegate.products.console.cells import column_fields, text_of
from tidegate.products.console.data_calls import check_sql
from tidegate.products.console.sign_in import actor_of
from tidegate.store.calls import read_state

MOST_ROWS = 200
MOST_CALLERS = 2_000
PREVIEW_LIMITS = Limits(max_rows=20, max_bytes=65_536, timeout_s=10.0)
_REFUSALS = ("policy.", "source.unknown")

GlobalRules = Callable[[], tuple[Sequence[Mask], Sequence[RowFilter]]]
"""The masks and filters that the settings give for every source, or by tags."""


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `access/ask`: whether a caller may run a statement on a source. `confirmed`: with
    the phrase of confirmation."""

    caller: str
    source: str
    statement: Annotated[str, msgspec.Meta(min_length=1, max_length=102_400)]
    confirmed: bool = False


class Preview(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `access/preview`: the first rows of a statement as a token reads them."""

    caller: str
    source: str
    statement: Annotated[str, msgspec.Meta(min_length=1, max_length=102_400)]


class AccessMatrix:
    """The matrix for an operator: an admin sees all callers on the sources that it is an admin of,
    everyone sees his own account."""

    def __init__(
        self,
        gateway: Gateway,
        callers: Callers,
        sources: Callable[[], Sequence[Source]],
        global_rules: GlobalRules,
        consent: Consent,
    ) -> None:
        self._gateway = gateway
        self._callers = callers
        self._sources = sources
        self._global_rules = global_rules
        self._consent = consent

    def choices(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """The callers and the sources that may be asked for, and the verbs."""
        words = query.get("q", "").casefold().split()
        callers = self._callers.seen_by(signed_in)
        own = administered(signed_in)
        found = [each for each in callers if _fits(words, each.name)]
        return {
            "verbs": [
                {
                    "name": verb.name,
                    "label": verb.label,
                    "kinds": [kind.word for kind in verb.kinds],
                }
                for verb in VERBS
            ],
            "callers": [caller_fields(each) for each in found[:MOST_CALLERS]],
            "more": len(found) > MOST_CALLERS,
            "by_source": own is None or bool(own),
            "why_not": "" if callers else "Only an admin may see that.",
        }

    def show(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """One page of the matrix: the sources of one `caller`, or the callers of one `source`.

        Raises: TidegateError ARGUMENT_INVALID if there is none that the operator may see.
        """
        began = time.perf_counter()
        words = query.get("q", "").casefold().split()
        offset, limit = _number(query, "after", 0), _number(query, "limit", 100)
        limit = max(1, min(limit, MOST_ROWS))
        if "source" in query:
            source = self._administered(query["source"], signed_in)
            found = [
                each
                for each in self._callers.on_source(signed_in)
                if _fits(words, f"{each.name} {each.kind}")
            ]
            page = found[offset : offset + limit]
            rows = [{"caller": caller_fields(each), **self._row(each, source)} for each in page]
        else:
            caller = self._caller(query.get("caller", ""), signed_in)
            seen = self._seen(caller, signed_in)
            found = [each for each in seen if _fits(words, f"{each.name} {' '.join(each.tags)}")]
            page = found[offset : offset + limit]
            rows = [{"source": _source(each), **self._row(caller, each)} for each in page]
        more = offset + limit < len(found)
        return {
            "rows": rows,
            "total": len(found),
            "next": str(offset + limit) if more else None,
            "server_ms": round((time.perf_counter() - began) * 1000, 1),
        }

    def cell(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """One cell with all that decided it. Raises: as `show`."""
        caller, source = self._pair(query.get("caller", ""), query.get("source", ""), signed_in)
        verb = BY_NAME.get(query.get("verb", ""))
        if verb is None:
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such verb")
        actor = caller.actor_on(source)
        detail = detail_of(actor, source, verb, self._gateway.statement_rules(source))
        strictest = detail.cell.strictest
        return {
            "caller": caller_fields(caller),
            "source": _source(source),
            "verb": verb.name,
            "label": verb.label,
            "kind": detail.cell.kind,
            "confirms": strictest.confirms,
            "rule": strictest.verdict.rule,
            "reason": strictest.verdict.reason,
            "hint": strictest.verdict.hint,
            "kinds": [
                {"word": each.word, "kind": each.kind, "reason": each.verdict.reason}
                for each in detail.cell.kinds
            ],
            "settings": [_setting(each, caller, source) for each in detail.settings],
            "rules": _findings(detail.explanation),
            "limits": self._limits(detail, caller, source, signed_in),
        }

    async def ask(self, body: Ask, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Whether a caller may run a statement. It is on record that it was asked; nothing runs.

        Raises: TidegateError ARGUMENT_INVALID, AUDIT_UNAVAILABLE, and what opening the source
        raises.
        """
        caller, source = await read_state(self._pair, body.caller, body.source, signed_in)
        records = self._consent.records(signed_in, address)
        details = _asked_about(caller, source)
        await asyncio.to_thread(records.before, "access.asked", details)
        actor = caller.actor_on(source)
        call = Call(
            actor,
            "console",
            "ask",
            Query(Statement(body.statement)),
            source.name,
            scope=Scope.READ_WRITE if body.confirmed else Scope.READ_ONLY,
            confirmed=body.confirmed,
        )
        try:
            judgement, explanation = await self._gateway.explain(call)
        except TidegateError as refusal:
            if not refusal.code.value.startswith(_REFUSALS):
                raise
            return _refused(refusal, caller, source)
        return self._answer(judgement, explanation, caller, source)

    async def preview(self, body: Preview, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """The first rows of a statement as a token reads them, without what is hidden from the
        operator who looks. It runs through the gate as the token, with both on record, and is in
        the history of neither.

        Raises: TidegateError POLICY_DENIED unless the token may read it without a yes;
        ARGUMENT_INVALID, AUDIT_UNAVAILABLE; as the gate.
        """
        caller, source = await read_state(self._pair, body.caller, body.source, signed_in)
        if caller.kind != "token":
            raise TidegateError(Code.ARGUMENT_INVALID, "Rows are shown as a token reads them")
        check_sql(source, "rows of its statements are not shown here")
        records = self._consent.records(signed_in, address)
        details = _asked_about(caller, source)
        await asyncio.to_thread(records.before, "access.previewed", details)
        operator = actor_of(signed_in, source.name)
        # What a proxy says of its own gate is no answer to an operator.
        actor = structs.replace(caller.actor_on(source), seen_by=operator, proxy=False)
        call = Call(
            *(actor, "console", "preview"),
            ReadRows(Statement(body.statement), limits=PREVIEW_LIMITS),
            source.name,
            client="console",
            reads_only=True,
            address=address,
            on_behalf_of=operator.id,
            waits=False,
        )
        judgement, explanation = await self._gateway.explain(call)
        verdict = explanation.verdict
        if judgement.effect is not Effect.READ or verdict.kind != "allow":
            raise TidegateError(
                Code.POLICY_DENIED,
                f"{caller.name} does not read this without a yes: {verdict.reason}",
                hint="Ask whether it would run: that names the rule.",
            )
        page = (await self._gateway.handle(call)).payload
        assert isinstance(page, Page)  # noqa: S101 - the answer to this request
        masked = {column for _, column in page.masked}
        rows: list[list[Any]] = msgspec.json.decode(page.rows)
        return {
            "columns": [column_fields(each, masked=each.name in masked) for each in page.columns],
            "rows": [
                [text_of(value) if value is not None else None for value in row] for row in rows
            ],
            "more": bool(page.truncations),
        }

    def _answer(
        self, judgement: Judgement, explanation: Explanation, caller: Caller, source: Source
    ) -> dict[str, Any]:
        verdict = explanation.verdict
        statements = self._gateway.statement_rules(source)
        settings = deciding_settings(verdict.rule, caller.actor_on(source), source, statements)
        if verdict.rule == judgement.rule:
            settings = ()  # what the statement is decides, whatever is set
        return {
            "verdict": verdict.kind,
            "rule": verdict.rule,
            "reason": verdict.reason,
            "hint": verdict.hint,
            "effect": judgement.effect.label,
            "judged_by": judgement.reason,
            "tables": list(judgement.tables),
            "settings": [_setting(each, caller, source) for each in settings],
            "rules": _findings(explanation),
        }

    def _row(self, caller: Caller, source: Source) -> dict[str, Any]:
        try:
            statements = self._gateway.statement_rules(source)
            cells = cells_of(caller.actor_on(source), source, statements)
        except TidegateError as error:
            return {"cells": None, "problem": error.without_secrets().message, "role": ""}
        role = "" if caller.operator is None else roles_text(caller.operator.roles)
        return {"cells": [cell_fields(each) for each in cells], "problem": "", "role": role}

    def _limits(
        self, detail: AccessDetail, caller: Caller, source: Source, signed_in: SignedIn
    ) -> list[dict[str, str]]:
        """What bounds the caller there, beside the verdict, and where each limit is kept."""
        place = _place_of(source)
        limits: list[dict[str, str]] = []
        rules = detail.data_rules
        if rules is not None:
            limits += self._hidden(rules, caller, source, signed_in)
        if detail.identity is not None and detail.identity.role is not None:
            limits.append(_limit("role", f"runs as {detail.identity.role}", place))
        limits += [_limit(name, text, place) for name, text in limits_of(source)]
        if (most := caller.actor.max_rows_changed) is not None:
            limits.append(_limit("max_rows_changed", f"changes at most {most} rows", caller.kept))
        if _runs_unattended(detail, source):
            text = "runs without a yes where the client cannot ask a person"
            limits.append(_limit("unattended", text, place))
        return limits

    def _hidden(
        self, rules: DataRules, caller: Caller, source: Source, signed_in: SignedIn
    ) -> list[dict[str, str]]:
        masks, filters = self._global_rules()
        everywhere = {(each.column, each.show) for each in masks}
        filtered = {each.table for each in filters}
        place, settings = _place_of(source), "the settings file, for every source or by a tag"
        limits = [
            _limit(
                "mask",
                f"{column} shows {show}",
                settings if (column, show) in everywhere else place,
            )
            for column, show in rules.masks
        ]
        own = administered(signed_in)
        shows_condition = own is None or source.name in own
        for table, where in rules.filters:
            text = f"{table} where {where}" if shows_condition else f"{table}, some rows"
            limits.append(_limit("filter", text, settings if table in filtered else place))
        if rules.only is not None:
            limits.append(_limit("tables", ", ".join(rules.only) or "no table", caller.kept))
        return limits

    # Who may see what

    def _caller(self, id: str, signed_in: SignedIn) -> Caller:
        for each in self._callers.seen_by(signed_in):
            if each.id == id:
                return each
        raise TidegateError(Code.ARGUMENT_INVALID, "There is no such caller, or you may not look")

    def _administered(self, name: str, signed_in: SignedIn) -> Source:
        for each in self._sources():
            if each.name == name and signed_in.may("admin", name):
                return each
        raise TidegateError(
            Code.ARGUMENT_INVALID, "There is no such source, or you are no admin of it"
        )

    def _seen(self, caller: Caller, signed_in: SignedIn) -> list[Source]:
        own = caller.id == f"operator:{signed_in.operator.name}"
        role = "viewer" if own else "admin"
        return [each for each in self._sources() if signed_in.may(role, each.name)]

    def _pair(self, caller: str, source: str, signed_in: SignedIn) -> tuple[Caller, Source]:
        """Both, if the operator may see them together."""
        own = f"operator:{signed_in.operator.name}"
        if caller == own:
            found = self._caller(caller, signed_in)
            for each in self._seen(found, signed_in):
                if each.name == source:
                    return found, each
        there = self._administered(source, signed_in)
        for each in self._callers.on_source(signed_in):
            if each.id == caller:
                return each, there
        raise TidegateError(Code.ARGUMENT_INVALID, "There is no such caller, or you may not look")


def _asked_about(caller: Caller, source: Source) -> dict[str, str]:
    """About whom and which source it was asked, for the record. A token by its own id: what follows
    the word and a colon would be taken for a secret there."""
    id = caller.id.removeprefix("token:")
    return {"caller": id, "caller_name": caller.name, "source": source.name}


def _runs_unattended(detail: AccessDetail, source: Source) -> bool:
    strictest = detail.cell.strictest
    asks = strictest.kind == "ask" and strictest.verdict.rule != ADMINISTRATION
    return asks and source.unattended == "allow" and source.approval == "any"


def _refused(refusal: TidegateError, caller: Caller, source: Source) -> dict[str, Any]:
    """What the gate refuses before it reads the statement."""
    shown = refusal.without_secrets()
    rule = str(refusal.details.get("rule", refusal.code.value))
    actor = caller.actor_on(source)
    known = rule.startswith(("actor.", "source."))
    settings = deciding_settings(rule, actor, source) if known else ()
    return {
        "verdict": "deny",
        "rule": rule,
        "reason": shown.message,
        "hint": shown.hint,
        "effect": "",
        "judged_by": "",
        "tables": [],
        "settings": [_setting(each, caller, source) for each in settings],
        "rules": [],
    }


def _findings(explanation: Explanation) -> list[dict[str, str | None]]:
    return [
        {
            "rule": finding.rule,
            "says": finding.description,
            "found": "passes" if finding.verdict is None else finding.verdict.kind,
            "reason": None if finding.verdict is None else finding.verdict.reason,
        }
        for finding in explanation.findings
    ]


def _setting(setting: DecidingSetting, caller: Caller, source: Source) -> dict[str, str]:
    kept = {
        "caller": caller.kept,
        "source": _place_of(source),
        "mode": f"[surface.{source.engine}] in the settings file",
        "program": "the program: no setting changes it",
    }[setting.holder]
    return {"name": setting.name, "value": setting.value, "kept": kept}


def _place_of(source: Source) -> str:
    if source.temporary:
        return f"the source {source.name}, which its caller opened"
    where = "in the settings file" if source.ephemeral else "in the state"
    return f"the source {source.name}, {where}"


def _limit(kind: str, text: str, kept: str) -> dict[str, str]:
    return {"kind": kind, "text": text, "kept": kept}


def cell_fields(cell: AccessCell) -> dict[str, Any]:
    strictest = cell.strictest
    return {
        "kind": cell.kind,
        "rule": strictest.verdict.rule,
        "reason": strictest.verdict.reason,
        "confirms": strictest.confirms,
        "differs": cell.differs,
    }


def caller_fields(caller: Caller) -> dict[str, Any]:
    return {
        "id": caller.id,
        "kind": caller.kind,
        "name": caller.name,
        "scope": caller.actor.scope.value,
        "kept": caller.kept,
    }


def _source(source: Source) -> dict[str, Any]:
    return {**source_fields(source.name, source), "engine": source.engine}


def _fits(words: Sequence[str], text: str) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise TidegateError(Code.ARGUMENT_INVALID, f"`{name}` is not a number")
    return int(text)
