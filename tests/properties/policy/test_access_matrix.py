"""What the matrix of Access says is what the gate does: callers, sources and rules of any kind, and
statements of each verb, sent through the gate to a database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tidegate.audit.log import AuditLog
from tidegate.engines.registry import language_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.access import cells_of, detail_of
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.requests import Browse, Call, Query, Request
from tidegate.model.source_settings import Mask, RowFilter, RunAs
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Statement
from tidegate.policy.access_matrix import VERBS, KindVerdict, Verb, kinds_of
from tidegate.policy.deciding_settings import every_rule, known_rules
from tidegate.store.sqlite.state import SqliteState

SCHEMA = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, secret TEXT);
    CREATE TABLE s (id INTEGER PRIMARY KEY, note TEXT);
    INSERT INTO s VALUES (1, 'a'), (2, 'b');
"""
SAMPLES: dict[str, str] = {
    "SELECT": "SELECT note FROM s",
    "rows to a file": "SELECT note FROM s",
    "INSERT": "INSERT INTO s (note) VALUES ('c')",
    "UPDATE with WHERE": "UPDATE s SET note = 'd' WHERE id = 1",
    "DELETE with WHERE": "DELETE FROM s WHERE id = 77",
    "insert": "INSERT INTO s (note) VALUES ('c')",
    "update": "UPDATE s SET note = 'd' WHERE id = 1",
    "delete": "DELETE FROM s WHERE id = 77",
    "ddl": "CREATE TABLE IF NOT EXISTS made (id INTEGER)",
    "UPDATE without WHERE": "UPDATE s SET note = 'e'",
    "DELETE without WHERE": "DELETE FROM s",
    "CREATE, ALTER ... ADD": "CREATE TABLE IF NOT EXISTS made (id INTEGER)",
    "DROP, TRUNCATE, ALTER ... DROP": "DROP TABLE gone",
    "VACUUM, CALL, outside of a transaction": "VACUUM",
}
"""A statement of each kind, as SQLite has it. It has no accounts."""
WITHOUT_SAMPLE = {"names of tables and columns", "GRANT, CREATE USER", "DROP USER"}
OF_DATA_RULES = {Code.POLICY_MASKED.value, Code.POLICY_TABLE.value}

scopes = st.sampled_from(list(Scope))
names = st.sampled_from(["claude", "ada", "bob"])
actors = st.builds(
    Actor,
    id=st.just("tok_1"),
    name=names,
    scope=scopes,
    sources=st.sampled_from([None, None, frozenset({"shop"}), frozenset({"other"})]),
    kind=st.sampled_from(["agent", "human"]),
    tags=st.sampled_from([None, None, frozenset({"eu"}), frozenset({"us"})]),
    tables=st.sampled_from([None, None, frozenset({"s", "made"}), frozenset({"shop:s"})]),
    roles=st.sampled_from(
        [
            None,
            None,
            None,
            (),
            (RoleGrant("viewer"),),
            (RoleGrant("admin"),),
            (RoleGrant("approver", frozenset({"shop"})),),
            (RoleGrant("admin", frozenset({"other"})),),
        ]
    ),
)
masks = st.sampled_from([
    (), (), (Mask("t.secret"),), (Mask("t.secret", tokens=("claude",)),),
    (Mask("t.secret", except_tokens=("claude",)),), (Mask("t.secret", tag="us"),),
    (Mask("t.secret", roles=("viewer",)),), (Mask("t.secret", except_operators=("ada",)),),
])  # fmt: skip
filters = st.sampled_from([
    (), (), (RowFilter("t", "id = 1"),), (RowFilter("t", "name = {actor.name}", tokens=("ada",)),),
    (RowFilter("t", "name = {actor.nobody}"),),
])  # fmt: skip
sources = st.fixed_dictionaries({
    "access": st.sampled_from(["none", "read", "write", "write", "admin", "admin"]),
    "agents": st.sampled_from(["allow", "allow", "ask", "deny"]),
    "approval_for": st.sampled_from(["nothing", "writes", "everything"]),
    "changes": st.sampled_from(["allow", "allow", "deny"]),
    "unqualified": st.sampled_from(["confirm", "allow", "deny"]),
    "destructive_scope": st.sampled_from(["readWrite", "fullAccess"]),
    "tags": st.sampled_from([(), ("eu",)]),
    "masks": masks,
    "filters": filters,
    "run_as": st.sampled_from([None, None, None, RunAs(roles=(("zoe", "reader"),))]),
})  # fmt: skip
admissions = st.sampled_from(["allow", "ask", "deny"])
rules = st.none() | st.builds(
    StatementRules,
    name=st.just("safe"),
    verbs=st.lists(
        st.tuples(st.sampled_from(["insert", "update", "delete", "ddl"]), admissions),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0],
    ).map(tuple),
)


class Shop:
    """One database, and a gate in front of it for each example."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "shop.db"
        self.url = f"sqlite:///{self.path}"
        with apsw.Connection(str(self.path)) as made:
            made.execute(SCHEMA)
        self.state = SqliteState(directory / "state.db")
        self.audit = AuditLog(directory / "audit")
        self.history = History(self.state.history)
        self.loop = asyncio.new_event_loop()

    def source(self, **given: Any) -> Source:
        return Source("s1", "shop", self.url, "sqlite", "sqlite", **given)

    def did(self, source: Source, statements: StatementRules | None, *calls: Call) -> list[Any]:
        """What the gate does with each call: nothing, or the code and the rule of its refusal."""

        with apsw.Connection(str(self.path)) as made:
            made.execute("CREATE TABLE IF NOT EXISTS gone (id INTEGER)")

        async def ask() -> list[Any]:
            connections = SourceConnections(self.state.sources, open_engine, [source])
            gateway = Gateway(
                *(connections, self.audit, self.history),
                options=GatewayOptions(statement_rules=lambda source: statements),
            )
            found: list[Any] = []
            for call in calls:
                try:
                    await gateway.handle(call)
                    found.append(None)
                except TidegateError as refusal:
                    found.append((refusal.code.value, refusal.details.get("rule", "")))
            await connections.close()
            return found

        return self.loop.run_until_complete(ask())

    def close(self) -> None:
        self.history.close()
        self.audit.close()
        self.state.close()
        self.loop.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"))
    yield shop
    shop.close()


def sent(actor: Actor, verb: Verb, word: str, *, confirmed: bool) -> Call:
    request: Request = (
        Browse("catalog") if verb.name == "names" else Query(Statement(SAMPLES[word]))
    )
    return Call(
        *(actor, "test", "tool", request, "shop"),
        scope=Scope.READ_WRITE if confirmed else Scope.READ_ONLY,
        confirmed=confirmed,
        reads_only=verb.reads_only,
    )


def agrees(cell: KindVerdict, did: Any, *, hides: bool) -> bool:
    """Whether what the gate did is what the cell says. Where something is hidden, a statement that
    would touch it may be refused for that."""
    code, rule = did or ("", "")
    if hides and cell.kind in ("masked", "ask") and code in OF_DATA_RULES:
        return True
    if cell.kind in ("allow", "masked"):
        return did is None
    if cell.kind == "ask":
        return code == Code.APPROVAL_NEEDED.value
    return (code.startswith("policy.") or code == Code.SOURCE_UNKNOWN.value) and rule == (
        cell.verdict.rule
    )


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(actor=actors, settings_of=sources, statements=rules)
@example(
    actor=Actor("tok_1", "claude", Scope.FULL_ACCESS),
    settings_of={"access": "admin"},
    statements=None,
)
@example(
    actor=Actor("tok_1", "claude", Scope.FULL_ACCESS),
    settings_of={"access": "write", "masks": (Mask("t.secret"),)},
    statements=None,
)
def test_a_statement_is_decided_as_its_cell_says(
    shop: Shop, actor: Actor, settings_of: dict[str, Any], statements: StatementRules | None
) -> None:
    source = shop.source(**settings_of)
    expected: list[tuple[Verb, KindVerdict]] = []
    calls: list[Call] = []
    for verb, cell in zip(VERBS, cells_of(actor, source, statements), strict=True):
        assert cell.strictest in cell.kinds
        for kind in cell.kinds:
            if kind.word in SAMPLES or verb.name == "names":
                expected.append((verb, kind))
                calls.append(sent(actor, verb, kind.word, confirmed=kind.confirms))
    found = shop.did(source, statements, *calls)
    detail = detail_of(actor, source, VERBS[0], statements)
    hides = detail.data_rules is not None
    for (verb, kind), did in zip(expected, found, strict=True):
        assert agrees(kind, did, hides=hides), (verb.name, kind, did)
        if verb.name == "read" and kind.kind == "masked":
            assert did is None  # what is hidden does not keep a read of the rest
    unconfirmed = [
        sent(actor, verb, kind.word, confirmed=False) for verb, kind in expected if kind.confirms
    ]
    for did in shop.did(source, statements, *unconfirmed):
        assert did is not None and did[0] == Code.POLICY_CONFIRM.value


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(actor=actors, settings_of=sources, statements=rules)
def test_the_panel_of_a_cell_says_what_the_cell_says(
    actor: Actor, settings_of: dict[str, Any], statements: StatementRules | None
) -> None:
    source = Source("s1", "shop", "sqlite:///x.db", "sqlite", "sqlite", **settings_of)
    for verb, cell in zip(VERBS, cells_of(actor, source, statements), strict=True):
        detail = detail_of(actor, source, verb, statements)
        assert detail.cell == cell
        assert detail.explanation.verdict == cell.strictest.verdict
        assert detail.settings, cell.strictest.verdict


def test_each_kind_has_a_sample_that_the_judge_reads_as_that_kind() -> None:
    source = Source("s1", "shop", "sqlite:///x.db", "sqlite", "sqlite")
    for verb in VERBS:
        for kind in kinds_of(verb, None):
            if kind.word in WITHOUT_SAMPLE:
                continue
            judged = language_of(source).classify(Query(Statement(SAMPLES[kind.word])), source)
            for name in ("effect", "unqualified"):
                assert getattr(judged, name) == getattr(kind.judgement, name), kind.word
            assert (judged.administration is None) == (kind.judgement.administration is None)
            assert judged.outside_transaction == kind.judgement.outside_transaction


@pytest.mark.parametrize(
    ("word", "text"),
    [("GRANT, CREATE USER", "GRANT SELECT ON t TO bob"), ("DROP USER", "DROP USER b")],
)
def test_statements_about_accounts_are_judged_as_their_kind(word: str, text: str) -> None:
    source = Source("s1", "shop", "postgresql://x/y", "postgres", "postgres")
    (kind,) = [kind for verb in VERBS for kind in verb.kinds if kind.word == word]
    judged = language_of(source).classify(Query(Statement(text)), source)
    known, expected = judged.administration, kind.judgement.administration
    assert judged.effect == kind.judgement.effect
    assert known is not None and expected is not None
    assert (known.drops, known.in_transaction) == (expected.drops, expected.in_transaction)


def test_the_settings_of_every_rule_of_policy_are_known() -> None:
    assert every_rule() <= known_rules()
