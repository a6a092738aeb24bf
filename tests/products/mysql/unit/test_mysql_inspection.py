"""What MySQL's own reading of a text and its catalog say beside the judge's reading.

The server is one of canned answers: real ones are asked in the contract of engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import pytest

from support.permits import permit_for
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.products.mysql.engine import catalog, inspect
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.inspect import (
    FRESH_S,
    MOST_DEPTH,
    POOLED_WORDS,
    RULE,
    STUDY_MS,
    VIEW_RULE,
    Inspector,
    PreparedCache,
    Views,
    check_change,
    first_word,
)
from tidegate.sql.judge import judge

SOURCE = Source("s1", "shop", "mysql://db/shop", "mysql", "mysql")
READ = Judgement(Effect.READ, "node.Select", "It reads")
READER = Identity("reader")


class _Server:
    """A server, its session and a connection lent to it: it answers from tables of answers and
    keeps what it was asked."""

    def __init__(
        self,
        views: dict[tuple[str, str], str | None] | None = None,
        functions: Sequence[str] = (),
        errors: dict[str, ServerError] | None = None,
        columns: int = 1,
    ) -> None:
        self.views = views or {}
        self.functions = functions
        self.errors = errors or {}
        self.columns = columns
        self.prepared: list[str] = []
        self.forgotten: list[int] = []
        self.asked: list[bytes] = []
        self.began: list[tuple[int, str | None]] = []
        self.identities: list[Identity | None] = []
        self.line = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: object) -> None:
        return None

    async def run_as(self, identity: Identity | None) -> None:
        self.identities.append(identity)

    async def begin(self, most_ms: int, database: str | None) -> None:
        self.began.append((most_ms, database))

    async def prepare(self, encoded: bytes) -> tuple[int, int, int]:
        text = encoded.decode()
        self.prepared.append(text)
        if text in self.errors:
            raise self.errors[text]
        return len(self.prepared), self.columns, 0

    def forget(self, statement: int) -> None:
        self.forgotten.append(statement)

    async def query_internal(self, text: bytes) -> list[tuple[Any, ...]]:
        self.asked.append(text)
        if text == catalog.STORED_FUNCTIONS:
            return [(name,) for name in self.functions]
        return [
            (*place, definition)
            for place, definition in self.views.items()
            if catalog.views([place]) in text
        ]


def canned(*args: Any, **more: Any) -> Any:
    return _Server(*args, **more)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(inspect.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def checked(
    inspector: Inspector, server: Any, text: str, read: Judgement | None = None,
    database: str | None = None, identity: Identity | None = None, *, explains: bool = False,
) -> bool:  # fmt: skip
    judgement = judge(text, "mysql") if read is None else read
    return await inspector.check_read(
        text, text.encode(), judgement, database, server, identity, explains=explains
    )


async def refused(*args: Any, **more: Any) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        await checked(*args, **more)
    return caught.value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT 1", "SELECT"),
        ("  \n(( select 1))", "SELECT"),
        ("/* a */ /* b\n */show tables", "SHOW"),
        ("-- a\nWITH a AS (SELECT 1) SELECT 1", "WITH"),
        ("--\nTABLE t", "TABLE"),
        ("# a\nDESC t", "DESC"),
        ("--x SELECT", ""),
        ("/*! SELECT 1 */", ""),
        ("/*M! SELECT 1 */", ""),
        ("1 SELECT", ""),
        ("", ""),
        ("# a", ""),
    ],
)
def test_the_first_word_stands_behind_blanks_brackets_and_comments(text: str, word: str) -> None:
    assert first_word(text) == word


async def test_what_the_server_prepares_with_columns_is_a_read() -> None:
    server, inspector = canned(), Inspector("shop")
    assert await checked(inspector, server, "SELECT a FROM t WHERE b = 1")
    assert await checked(inspector, server, "SELECT a FROM t WHERE b = 2")
    assert server.prepared == ["SELECT a FROM t WHERE b = 1"]  # texts of one form only once
    assert server.forgotten == [1]
    assert server.began == [(STUDY_MS, None)]
    assert await checked(inspector, server, "SELECT a FROM t WHERE b = 1", database="other")
    assert server.began[1:] == [(STUDY_MS, "other")]


@pytest.mark.parametrize("word", ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESC"])
async def test_only_words_that_read_are_a_read_with_columns(word: str) -> None:
    assert await checked(Inspector("shop"), canned(), f"{word} t", READ)
    error = await refused(Inspector("shop"), canned(columns=0), f"{word} t", READ)
    assert (error.code, error.details["rule"]) == (Code.POLICY_READ_ONLY, RULE)
    for other in ("CHECK TABLE t", "ANALYZE TABLE t", "HELP 'a'"):
        error = await refused(Inspector("shop"), canned(), other, READ)
        assert (error.code, error.details["effect"]) == (Code.POLICY_READ_ONLY, "write")


@pytest.mark.parametrize("number", [1290, 1792, 1836, 1295])
async def test_what_a_session_for_reading_refuses_is_a_change(number: int) -> None:
    server = canned(errors={"SELECT f()": ServerError(number, "HY000", "no")})
    error = await refused(Inspector("shop"), server, "SELECT f()", READ)
    assert (error.code, error.details["rule"]) == (Code.POLICY_READ_ONLY, RULE)
    assert server.forgotten == []
    opinion = await Inspector("shop").inspect("SELECT f()", READ, server)
    assert opinion is not None
    assert (opinion.effect, opinion.code) == (Effect.WRITE, Code.POLICY_READ_ONLY.value)


async def test_what_the_server_cannot_prepare_gives_its_error_and_no_opinion() -> None:
    server = canned(errors={"SELECT x": ServerError(1054, "42S22", "Unknown column 'x'")})
    error = await refused(Inspector("shop"), server, "SELECT x", READ)
    assert (error.code, error.details["mysql"]) == (Code.SQL_FAILED, 1054)
    assert await Inspector("shop").inspect("SELECT x", READ, server) is None


@pytest.mark.parametrize(
    ("number", "read", "explains", "shown"),
    [
        (1792, READ, True, True),
        (1792, READ, False, False),
        (1295, READ, True, False),
        (1792, judge("DROP TABLE t", "mysql"), True, False),
    ],
)
async def test_a_change_is_explained_where_the_server_takes_it_for_one(
    number: int, read: Judgement, explains: bool, shown: bool
) -> None:
    text = "EXPLAIN DELETE FROM t"
    server = canned(errors={text: ServerError(number, "HY000", "no")})
    if shown:
        assert not await checked(Inspector("shop"), server, text, read, explains=explains)
    else:
        error = await refused(Inspector("shop"), server, text, read, explains=explains)
        assert error.code is Code.POLICY_READ_ONLY


async def test_what_the_judge_takes_for_more_is_refused_with_its_reason() -> None:
    for text, code in (
        ("DELETE FROM t", Code.POLICY_READ_ONLY),
        ("SELECT unlisted(1)", Code.SQL_FUNCTION),
        ("", Code.SQL_EMPTY),
        ("SELECT 1; SELECT 2", Code.SQL_MULTIPLE),
    ):
        judgement = judge(text, "mysql")
        error = await refused(Inspector("shop"), canned(), text)
        assert (error.code, error.message) == (code, judgement.reason)
    error = await refused(Inspector("shop"), canned(), "DELETE FROM t")
    assert error.details == {"effect": "write", "rule": judge("DELETE FROM t", "mysql").rule}


VIEWS: list[tuple[dict[tuple[str, str], str | None], str, str]] = [
    ({}, "SELECT a FROM v", ""),
    ({("shop", "v"): "select 1 AS a"}, "SELECT a FROM v", ""),
    ({("shop", "v"): ""}, "SELECT a FROM v", "keeps from this account"),
    ({("shop", "v"): None}, "SELECT a FROM v", "keeps from this account"),
    ({("shop", "v"): "select unlisted(1) AS a"}, "SELECT a FROM v", "may do more than read"),
    ({("shop", "v"): "select `abs`(1) AS a"}, "SELECT a FROM v", "stored function abs"),
    ({("shop", "v"): "select abs(`a`) AS a"}, "SELECT a FROM v", ""),
    ({("other", "v"): "select unlisted(1) AS a"}, "SELECT a FROM v", ""),
    ({("other", "v"): "select unlisted(1) AS a"}, "SELECT a FROM other.v", "may do more"),
    ({("shop", "v"): "select a from w", ("shop", "w"): ""}, "SELECT a FROM v", "view w keeps"),
    ({("o", "v"): "select a from w", ("o", "w"): ""}, "SELECT a FROM o.v", "view w keeps"),
    ({("o", "v"): "select a from w", ("shop", "w"): ""}, "SELECT a FROM o.v", ""),
    ({("shop", "v"): "select a from v"}, "SELECT a FROM v", ""),
    ({("sys", "v"): ""}, "SELECT a FROM sys.v", ""),
]  # fmt: skip


@pytest.mark.parametrize(("views", "text", "objection"), VIEWS)
async def test_a_view_is_judged_by_its_definition_and_by_the_views_that_it_reads(
    views: dict[tuple[str, str], str | None], text: str, objection: str
) -> None:
    tables = tuple(text.rpartition(" ")[2:])
    read = Judgement(Effect.READ, "node.Select", "It reads", tables=tables)
    server = canned(views)
    opinion = await Inspector("shop").inspect(text, read, server)
    assert opinion is not None
    assert opinion.tables == tables
    if not objection:
        assert await checked(Inspector("shop"), server, text, read)
        assert (opinion.effect, opinion.code, opinion.rule) == (Effect.READ, None, RULE)
        return
    error = await refused(Inspector("shop"), server, text, read)
    assert (error.code, error.details["rule"]) == (Code.SQL_FUNCTION, VIEW_RULE)
    assert objection in error.message
    assert (opinion.effect, opinion.rule) == (Effect.UNKNOWN, VIEW_RULE)
    assert (opinion.code, opinion.reason) == (Code.SQL_FUNCTION.value, error.message)


def nested(depth: int) -> dict[tuple[str, str], str | None]:
    """Views that read one another, as many as `depth`."""
    return {("shop", f"v{at}"): f"select a from v{at + 1}" for at in range(depth)}


async def test_views_that_are_nested_too_deeply_are_refused() -> None:
    read = Judgement(Effect.READ, "node.Select", "It reads", tables=("v0",))
    assert await checked(Inspector("shop"), canned(nested(MOST_DEPTH - 2)), "SELECT a", read)
    error = await refused(Inspector("shop"), canned(nested(MOST_DEPTH)), "SELECT a", read)
    assert "nested too deeply" in error.message


async def test_a_stored_function_with_a_listed_name_is_refused() -> None:
    read = Judgement(Effect.READ, "node.Select", "It reads", functions=("ABS", "Lower"))
    assert await checked(Inspector("shop"), canned(functions=["other"]), "SELECT 1", read)
    error = await refused(Inspector("shop"), canned(functions=["LOWER"]), "SELECT 1", read)
    assert (error.code, error.details["rule"]) == (Code.SQL_FUNCTION, VIEW_RULE)
    assert "Lower" in error.message
    plain = canned()
    assert await checked(Inspector("shop"), plain, "SELECT 1", READ)
    assert plain.asked == []  # what names nothing needs no catalog
    known = Views().recall(READ, "shop")
    assert known is not None and (known.objection, known.stored) == (None, ())
    tables = Judgement(Effect.READ, "r", "It reads", tables=("t",))
    assert await checked(Inspector("shop"), plain, "SELECT 1", tables)
    assert plain.asked == [catalog.views([("shop", "t")])]


async def test_the_objection_names_the_functions_of_the_opinion() -> None:
    read = Judgement(Effect.READ, "r", "It reads", tables=("t",), functions=("abs",))
    opinion = await Inspector("shop").inspect("SELECT 1", read, canned())
    assert opinion is not None
    assert (opinion.tables, opinion.functions) == (("t",), ("abs",))


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("SELECT lower(a), LOWER(b) FROM t", True),
        ("SELECT lower (a) FROM t", False),
        ("SELECT `lower`(a) FROM t", False),
        ("SELECT lower(a), lower/**/(b) FROM t", False),
        ("SELECT 1", False),
        ("SELECT 'lower(a)' FROM t", False),
    ],
)
async def test_a_stored_function_is_not_meant_where_the_server_has_its_own_for_sure(
    text: str, runs: bool
) -> None:
    read = Judgement(Effect.READ, "node.Select", "It reads", functions=("lower",))
    if runs:
        assert await checked(Inspector("shop"), canned(functions=["lower"]), text, read)
    else:
        await refused(Inspector("shop"), canned(functions=["lower"]), text, read)


async def test_what_the_catalog_says_holds_for_some_seconds(clock: Clock) -> None:
    read = Judgement(Effect.READ, "r", "It reads", tables=("v",), functions=("abs",))
    server, inspector = canned({("shop", "v"): "select 1"}), Inspector("shop")
    assert await checked(inspector, server, "SELECT a", read)
    asked = len(server.asked)
    server.views["shop", "v"] = "select unlisted(1)"
    clock.now += FRESH_S - 0.1
    assert await checked(inspector, server, "SELECT a", read)
    other = Judgement(Effect.READ, "r", "It reads", tables=("v", "w"), functions=("lower",))
    assert await checked(inspector, server, "SELECT b", other)
    assert catalog.STORED_FUNCTIONS not in server.asked[asked:]
    assert server.asked[asked:] == [catalog.views([("shop", "w")])]  # of `v` it is known yet
    clock.now += 0.2
    await refused(inspector, server, "SELECT a", read)
    assert catalog.STORED_FUNCTIONS in server.asked[asked:]


async def test_after_a_change_the_catalog_is_asked_again() -> None:
    read = Judgement(Effect.READ, "r", "It reads", tables=("v",), functions=("abs",))
    server, inspector = canned(), Inspector("shop")
    assert await checked(inspector, server, "SELECT a", read)
    server.functions = ["abs"]
    inspector.forget()
    await refused(inspector, server, "SELECT a", read)
    views = Views()
    assert (await views.look(server, read, "shop")).stored == ("abs",)
    server.functions, server.views = [], {("shop", "v"): ""}
    views.forget()
    assert views.recall(read, "shop") is None
    found = await views.look(server, read, "shop")
    assert found.objection is not None
    assert views.recall(read, "shop") == found
    assert views.recall(read, "other") is None
    server.views = {}
    views.forget()
    assert (await views.look(server, read, "shop")).objection is None


async def test_what_one_role_sees_says_nothing_of_another() -> None:
    read = Judgement(Effect.READ, "r", "It reads", tables=("v",))
    server, inspector = canned(), Inspector("shop")
    assert await checked(inspector, server, "SELECT a", read)
    server.views["shop", "v"] = ""
    assert await checked(inspector, server, "SELECT a", read)
    await refused(inspector, server, "SELECT a", read, identity=READER)
    assert server.identities == [None, None, READER]
    assert await checked(inspector, server, "SELECT a", read)


async def test_a_table_is_looked_for_where_the_call_runs(clock: Clock) -> None:
    read = Judgement(Effect.READ, "r", "It reads", tables=("v",))
    server = canned({("shop", "v"): ""})
    await refused(Inspector("shop"), server, "SELECT a", read)
    assert await checked(Inspector("shop"), server, "SELECT a", read, database="other")
    await refused(Inspector("other"), server, "SELECT a", read, database="shop")
    assert await checked(Inspector(None), server, "SELECT a", read)
    qualified = Judgement(Effect.READ, "r", "It reads", tables=("shop.v",))
    await refused(Inspector(None), server, "SELECT a", qualified)
    dotted = canned({("home", "shop.v"): ""})
    await refused(Inspector("home"), dotted, "SELECT a", qualified)


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "_MOST_KEPT", 2)
    monkeypatch.setattr(inspect, "_MOST_ROLES", 2)
    server, inspector = canned(), Inspector("shop")
    for number in range(5):
        read = Judgement(Effect.READ, "r", "It reads", tables=(f"t{number}",))
        identity = Identity(f"r{number}")
        assert await checked(inspector, server, "SELECT a", read, identity=identity)
        assert len(inspector._views) <= 3
    views = Views()
    for number in range(9):
        read = Judgement(Effect.READ, "r", "It reads", tables=(f"t{number}",))
        found = await views.look(server, read, "shop")
        assert found.objection is None
        assert views.recall(read, "shop") == found
        assert len(views._definitions) <= 3
        assert len(views._answers) <= 3
    assert len(views._answers) > 1


def test_texts_that_read_are_kept_and_the_oldest_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspect, "_MOST_KEPT", 2)
    cache = PreparedCache()
    reads = inspect.Prepared(Effect.READ, "It reads")
    for text in ("a", "b", "c"):
        cache.put((text, None), reads)
    assert cache.get(("a", None)) is None
    for text in ("b", "c"):
        found = cache.get((text, None))
        assert found is not None
        assert found.effect is Effect.READ
    assert cache.get(("b", "shop")) is None
    cache.put(("w", None), inspect.Prepared(Effect.WRITE, "It writes"))
    assert cache.get(("w", None)) is None
    cache.put(("x" * 8192, None), reads)
    cache.put(("x" * 8193, None), reads)
    assert cache.get(("x" * 8192, None)) is not None
    assert cache.get(("x" * 8193, None)) is None


def change_refused(text: str, effect: Effect = Effect.DESTRUCTIVE) -> TidegateError:
    permit = permit_for(SOURCE, Query(Statement(text)), effect)
    with pytest.raises(TidegateError) as caught:
        check_change(text, judge(text, "mysql"), permit)
    return caught.value


@pytest.mark.parametrize("word", sorted(POOLED_WORDS))
def test_what_is_about_a_session_is_no_change(word: str) -> None:
    error = change_refused(f"{word} x")
    assert (error.code, error.message.split()[0]) == (Code.POLICY_DENIED, word)


@pytest.mark.parametrize(
    ("text", "code"), [("", Code.SQL_EMPTY), ("DELETE FROM t; SELECT 1", Code.SQL_MULTIPLE)]
)
def test_a_change_is_one_statement(text: str, code: Code) -> None:
    assert change_refused(text).code is code


@pytest.mark.parametrize(
    ("text", "effect", "runs"),
    [
        ("SELECT 1", Effect.WRITE, True),
        ("INSERT INTO t VALUES (1)", Effect.WRITE, True),
        ("INSERT INTO t VALUES (1)", Effect.READ, False),
        ("DROP TABLE t", Effect.WRITE, False),
        ("DROP TABLE t", Effect.DESTRUCTIVE, True),
        ("GRANT SELECT ON t TO a", Effect.DESTRUCTIVE, False),
        ("GRANT SELECT ON t TO a", Effect.ADMIN, True),
        ("SELECT unlisted(1)", Effect.WRITE, True),
    ],
)
def test_a_change_is_no_more_than_its_permit_is_for(text: str, effect: Effect, runs: bool) -> None:
    read = judge(text, "mysql")
    if runs:
        check_change(text, read, permit_for(SOURCE, Query(Statement(text)), effect))
        return
    error = change_refused(text, effect)
    assert (error.code, error.message) == (Code.POLICY_DENIED, read.reason)
    assert error.details == {"effect": read.effect.label, "rule": read.rule}
