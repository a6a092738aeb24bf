"""Attempts at hidden values and rows, on real databases: refused, or answered with masks."""

import asyncio
import hashlib

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.masking_cases import BY_ENGINE, COMMON, EXTRA
from support.masking_shop import (
    ENGINES,
    KEY,
    ROWS,
    Shop,
    make,
    opened,
    row_texts,
    script,
)
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

OF_OTHERS = ("SELECT * FROM duckdb_settings()",)
"""Speaks of secrets, but of none of ours."""


@pytest.fixture(scope="module", params=ENGINES)
def shop(request, tmp_path_factory):
    shop = Shop(request.param, tmp_path_factory.mktemp("shop"), EXTRA[request.param])
    yield shop
    shop.close()


def _cases(shop, mark):
    for line in (COMMON + BY_ENGINE[shop.name]).splitlines():
        if line.startswith(mark):
            text = line[2:].replace("{db}", shop.real.catalog.database)
            yield text.replace('"', "`") if shop.name == "mysql" else text


def test_what_could_tell_is_refused(shop):
    answered = []
    for text in _cases(shop, "!"):
        try:
            answered.append((text, shop.real.rewritten(text)))
        except TidegateError as error:
            assert error.code is Code.POLICY_MASKED, text
    assert answered == []


def test_a_refused_change_leaves_the_tables_as_they_were(shop):
    tables = ("customers", "orders", "products")
    before = [row_texts(shop.ask_plainly(f"SELECT * FROM {table}")[1]) for table in tables]
    for text in _cases(shop, "!"):
        with pytest.raises(TidegateError):
            shop.ask(text)
    after = [row_texts(shop.ask_plainly(f"SELECT * FROM {table}")[1]) for table in tables]
    assert after == before


def test_what_is_answered_is_what_one_sees_where_all_is_hidden(shop):
    for text in _cases(shop, "="):
        assert row_texts(shop.ask(text)[1]) == row_texts(shop.expected(text)[1]), text


def test_nothing_hidden_and_no_key_is_in_any_answer_or_error(shop):
    for text in (*_cases(shop, "="), *_cases(shop, "?")):
        try:
            names, rows = shop.ask(text)
        except TidegateError as error:
            names, said = [], error.message
        else:
            said = repr(row_texts(rows))
        if text not in OF_OTHERS:
            assert "secret" not in said, text
        assert KEY[:8] not in f"{said} {names}", text


def test_what_is_rewritten_still_only_reads(shop):
    for text in (*_cases(shop, "="), *_cases(shop, "?")):
        written = shop.real.masked(text)
        assert KEY not in written.text, text
        written = written.text.replace("tidegate_hash(", "hex(")
        assert judge(written, shop.real.dialect).effect is Effect.READ, text


def test_the_values_are_there_for_who_is_bound_by_nothing(shop):
    assert "secret" in repr(shop.ask_plainly("SELECT email, phone FROM customers"))
    assert "secretmemo" in repr(shop.ask_plainly("SELECT memo FROM orders"))


def test_names_of_columns_stay_as_they_are(shop):
    for text in (
        "SELECT * FROM customers",
        "SELECT o.*, c.email FROM orders o JOIN customers c ON c.id = o.customer_id",
        "SELECT email AS mail, count(*) AS n FROM customers GROUP BY email",
        "SELECT * FROM vip_orders",
    ):
        assert shop.ask(text)[0] == shop.expected(text)[0]


DEAR = DataRules(filters=(("orders", "abs(tenant_id) + abs(tenant_id) - tenant_id + 0 = 7"),))
"""A filter that a planner would rather look at last."""

TELLING = {
    "postgres": "SELECT id FROM orders WHERE memo::int > 0",
    "mysql": "SELECT id FROM orders WHERE IF(memo = 'secretmemo', (SELECT 1 UNION SELECT 2), 1)",
    "sqlite": "SELECT id FROM orders WHERE json_extract(memo, '$') > 0",
    "duckdb": "SELECT id FROM orders WHERE memo::INTEGER > 0",
}


def test_a_condition_of_the_callers_never_meets_a_hidden_row(shop):
    text = TELLING[shop.name]
    with pytest.raises(TidegateError):
        shop.ask_plainly(text)  # fails on a row that is hidden: who hears of it, learns of the row
    assert row_texts(shop.ask(text, DEAR)[1]) == row_texts(shop.expected(text)[1])


def test_a_plan_is_shown_where_no_figure_of_it_follows_from_what_is_hidden(shop):
    text = "SELECT email FROM customers WHERE email = 'x'"
    if shop.name == "sqlite":
        assert KEY[:8] not in repr(shop.ask(f"EXPLAIN QUERY PLAN {text}"))
        text = text.replace("customers", "orders").replace("email", "notes")
    for words in ("EXPLAIN", "EXPLAIN QUERY PLAN") if shop.name == "sqlite" else ("EXPLAIN",):
        with pytest.raises(TidegateError) as refused:
            shop.ask(f"{words} {text}")
        assert refused.value.details["rule"] == "masking.explain"


HASHED = DataRules(masks=(("customers.email", "hash"),))


def hash_of(value):
    return hashlib.sha256(f"{KEY}{value}".encode()).hexdigest()


def test_equal_values_have_equal_hashes_with_whatever_parameters(shop):
    marks = ("$1", "$2") if shop.name in ("postgres", "duckdb") else ("?", "?")
    plain = dict(shop.ask_plainly("SELECT id, email FROM customers")[1])
    text = (
        f"SELECT a.id, a.email FROM customers a JOIN customers b ON a.email = b.email"
        f" WHERE a.id >= {marks[0]} AND b.id <= {marks[1]} GROUP BY a.id, a.email"
    )
    rows = shop.ask(Statement(text, (0, 10_000)), HASHED)[1]
    assert rows
    assert dict(rows) == {key: hash_of(plain[key]) for key, _ in rows}


def test_the_key_cannot_be_asked_of_the_database(shop):
    for text in (
        "SELECT * FROM (VALUES ((SELECT email FROM customers LIMIT 1))) v",
        "SELECT CAST(email AS int) FROM customers",
        "SELECT CAST('0123456789abcdef' AS int) FROM customers WHERE email <> ''",
        "SELECT email + 1, email FROM customers",
        "SELECT x.email.y FROM customers x",
    ):
        try:
            names, rows = shop.ask(text, HASHED)
        except TidegateError as error:
            if "CAST('0123" in text and shop.name in ("postgres", "duckdb"):
                assert "0123456789abcdef" in error.message  # the caller's own text is no secret
                continue
            names, rows = [repr(error)], [(repr(error.details),)]
        for at in range(len(KEY) - 7):
            assert KEY[at : at + 8] not in f"{names} {rows}" or "CAST('0123" in text, text


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_other_sessions_see_no_key_while_a_masked_statement_runs(tmp_path, engine):
    """PostgreSQL lists the statements of all sessions; the others list none of other processes."""
    url = make(engine, tmp_path, "seen", script(ROWS))
    async with opened(url) as (side,):
        wait = "pg_sleep(1) IS NULL" if engine == "postgres" else "SLEEP(1) = 0"
        text = f"SELECT email FROM customers WHERE id = 1 AND {wait}"
        async with asyncio.TaskGroup() as tasks:
            masked = tasks.create_task(side.ask(side.masked(text, HASHED)))
            seen = ""
            while "FROM (SELECT" not in seen and not masked.done():
                seen = await asyncio.to_thread(_sessions, engine)
        assert "FROM (SELECT" in seen
        assert KEY not in seen


def _sessions(engine):
    if engine == "postgres":
        return repr(postgres_server.shared().ask("SELECT query FROM pg_stat_activity"))
    return repr(mysql_server.shared().script("SELECT info FROM information_schema.processlist"))
