"""Attempts at hidden values and rows, on real databases: refused, or told the masked truth."""

import pytest

from shield_cases import BY_ENGINE, COMMON, EXTRA
from shield_shop import ENGINES, KEY, SHIELD, Shop, told
from tidegate.errors import Code, GateError
from tidegate.sql.judge import judge
from tidegate.sql.shield.model import Shield
from tidegate.statements import Effect

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
        except GateError as error:
            assert error.code is Code.POLICY_MASKED, text
    assert answered == []


def test_a_refused_change_leaves_the_tables_as_they_were(shop):
    tables = ("customers", "orders", "products")
    before = [told(shop.ask_plainly(f"SELECT * FROM {table}")[1]) for table in tables]
    for text in _cases(shop, "!"):
        with pytest.raises(GateError):
            shop.ask(text)
    after = [told(shop.ask_plainly(f"SELECT * FROM {table}")[1]) for table in tables]
    assert after == before


def test_what_is_answered_is_what_one_sees_where_all_is_hidden(shop):
    for text in _cases(shop, "="):
        assert told(shop.ask(text)[1]) == told(shop.expected(text)[1]), text


def test_nothing_hidden_and_no_key_is_in_any_answer_or_error(shop):
    for text in (*_cases(shop, "="), *_cases(shop, "?")):
        try:
            names, rows = shop.ask(text)
        except GateError as error:
            names, said = [], error.message
        else:
            said = repr(told(rows))
        if text not in OF_OTHERS:
            assert "secret" not in said, text
        assert KEY[:8] not in f"{said} {names}", text


def test_what_is_rewritten_still_only_reads(shop):
    for text in (*_cases(shop, "="), *_cases(shop, "?")):
        written = shop.real.rewritten(text).replace("tidegate_hash(", "hex(")
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


DEAR = Shield(filters=(("orders", "abs(tenant_id) + abs(tenant_id) - tenant_id + 0 = 7"),))
"""A filter that a planner would rather look at last."""

TELLING = {
    "postgres": "SELECT id FROM orders WHERE memo::int > 0",
    "mysql": "SELECT id FROM orders WHERE IF(memo = 'secretmemo', (SELECT 1 UNION SELECT 2), 1)",
    "sqlite": "SELECT id FROM orders WHERE json_extract(memo, '$') > 0",
    "duckdb": "SELECT id FROM orders WHERE memo::INTEGER > 0",
}


def test_a_condition_of_the_callers_never_meets_a_hidden_row(shop):
    text = TELLING[shop.name]
    with pytest.raises(GateError):
        shop.ask_plainly(text)  # fails on a row that is hidden: who hears of it, learns of the row
    assert told(shop.ask(text, DEAR)[1]) == told(shop.expected(text)[1])


def test_the_plan_shows_no_key(shop):
    plan = shop.ask("EXPLAIN SELECT email FROM customers WHERE email = 'x'")
    assert KEY[:8] not in repr(plan)
    assert SHIELD.masks
