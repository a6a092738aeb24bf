"""Attempts at hidden values and rows of a cloud provider: what comes is what one sees where all is
hidden already, or a refusal. The provider counts what reaches it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from products.cloud.support.cloud_shop import answer, write_shop
from support.cloud_api import Farm, Reply
from support.masking_cases import COMMON, SQLITE
from support.masking_shop import (
    DATA_RULES,
    HIDDEN_ROWS,
    KEY,
    ROWS,
    hashed,
    partly,
    row_texts,
    script,
)
from support.permits import permit_for
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.data_rules import DataRules
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain, Prepare, Query
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement

RULES = DataRules(
    tuple((f"shop.all.{column}", show) for column, show in DATA_RULES.masks),
    tuple((f"shop.all.{table}", where) for table, where in DATA_RULES.filters),
)
NOTHING = Catalog("c", "", (), (), "")
_NAMES = "customers|orders|products|vip_orders|vip|cheap"
_IN_FROM = re.compile(
    rf'(?i)\b(FROM\s+\(*|FROM/\*\*/|JOIN |, ?)(")?({_NAMES})\b(?!"?\s*(AS )?\(|\.)'
)
_OWN_CTE = re.compile(rf"(?i)\b({_NAMES})(\(i\))? AS \(")
_COLUMN_OF_THAT_NAME = re.compile(rf"(?i)\d AS ({_NAMES})\b")
_OF_SQLITE = re.compile(r"main\.|pragma_|sqlite_|PRAGMA|docs|\(customers\)|cheap|products UNION")


class Shop:
    """The source under rules, on one API."""

    def __init__(self, folder: Path, answers: Any = answer) -> None:
        self.api = Farm(answers)
        url = f"cloud://{write_shop(folder)}"
        self.source = Source(
            "s", "shop", url, *engine_of(url), access="write", options=self.api.options
        )
        self.plain = apsw.Connection(":memory:")
        for statement in script(HIDDEN_ROWS):
            self.plain.execute(statement)

    async def ask(self, request: Any, rules: DataRules = RULES) -> tuple[list[str], list[Any]]:
        """Columns and rows of a request as the gate sends it on."""
        if isinstance(request, str):
            request = Query(Statement(request))
        language = language_of(self.source)
        effect = language.classify(request, self.source).effect
        rewritten = language.rewrite(request, self.source, rules, NOTHING, KEY)
        if rewritten is None:  # as the gate does
            raise TidegateError(Code.POLICY_MASKED, "It cannot be read.")
        return await self.run(permit_for(self.source, rewritten, effect))

    async def run(self, permit: Permit) -> tuple[list[str], list[Any]]:
        """Columns and rows of what the engine runs."""
        engine = await open_engine(self.source)
        try:
            cursor = cast("Any", await engine.run(permit, NEVER))
            rows: list[Any] = []
            while some := await cursor.fetch(1_000):
                rows += [tuple(row) for row in some]
            await cursor.close()
            return [each.name for each in cursor.columns], rows
        finally:
            await engine.close()

    async def refusal(self, request: Any, rules: DataRules = RULES) -> TidegateError:
        with pytest.raises(TidegateError) as caught:
            await self.ask(request, rules)
        return caught.value


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"))
    yield shop
    shop.api.close()


@pytest.fixture
def shop(whole: Shop) -> Shop:
    whole.api.reset()
    return whole


def cases(mark: str) -> list[str]:
    """Statements of the corpus over this provider's resources."""
    found = [
        line[2:].replace("[customers]", "customers").replace("`customers`", "customers")
        for line in (COMMON + SQLITE).splitlines()
        if line.startswith(mark)
    ]
    return [
        _IN_FROM.sub(lambda m: f"{m[1]}shop.all.{m[2] or ''}{m[3]}", each)
        for each in found
        if not any(other.search(each) for other in (_OWN_CTE, _OF_SQLITE, _COLUMN_OF_THAT_NAME))
    ]


async def test_what_is_answered_is_what_one_sees_where_all_is_hidden(shop: Shop) -> None:
    asked = cases("=")
    assert len(asked) > 40
    for text in asked:
        plain = text.replace("shop.all.", "")
        assert row_texts((await shop.ask(text))[1]) == row_texts(
            [tuple(row) for row in shop.plain.execute(plain)]
        ), text


async def test_nothing_hidden_and_no_key_is_in_any_answer_or_error(shop: Shop) -> None:
    for text in (*cases("="), *cases("?"), *cases("!")):
        try:
            said = repr((await shop.ask(text))[1])
        except TidegateError as error:
            said = f"{error.message} {error.details}"
        assert "secret" not in said, text
        assert KEY[:8] not in said, text
    assert shop.api.paths("PATCH") == shop.api.paths("DELETE") == []
    assert "secret" in repr(await shop.ask("SELECT * FROM shop.all.customers", DataRules()))


async def test_names_of_columns_stay_as_they_are(shop: Shop) -> None:
    assert (await shop.ask("SELECT * FROM shop.all.vip_orders"))[0] == [
        "id", "contact", "notes", "total",
    ]  # fmt: skip
    names, _ = await shop.ask("SELECT email, c.* FROM shop.all.customers c")
    assert names == ["email", "id", "name", "email", "phone", "spent"]


async def test_a_join_finds_equal_hashes_and_no_masked_value(shop: Shop) -> None:
    text = (
        "SELECT a.id, b.id, a.email FROM shop.all.customers a JOIN shop.all.customers b"
        " ON a.email = b.email WHERE a.id < b.id"
    )
    expected = [
        (a[0], b[0], hashed(a[2]))
        for a in ROWS["customers"]
        for b in ROWS["customers"]
        if a[0] < b[0] and a[2] is not None and a[2] == b[2]
    ]
    assert row_texts((await shop.ask(text))[1]) == row_texts(expected)
    for value in (ROWS["customers"][0][2], ROWS["orders"][0][4]):
        for condition in (f"= '{value}'", f"IN ('{value}', 'x')", f"LIKE '{value}'"):
            text = f"SELECT id FROM shop.all.customers WHERE email {condition}"
            assert (await shop.ask(text))[1] == []


@pytest.mark.parametrize(
    "condition", ["q = 'secret1'", "sort = 'email'", "q IN ('a', 'b')",
                  "q = (SELECT title FROM shop.all.products LIMIT 1)"],
)  # fmt: skip
async def test_a_parameter_by_which_the_provider_could_search_is_refused(
    shop: Shop, condition: str
) -> None:
    for text in (
        f"SELECT count(*) FROM shop.all.customers WHERE {condition}",
        f"SELECT 1 WHERE EXISTS (SELECT 1 FROM shop.all.customers c WHERE c.{condition})",
    ):
        error = await shop.refusal(text)
        assert error.code is Code.POLICY_MASKED
        assert "by the parameter" in error.message
    assert not any(path.startswith("/customers") for path in shop.api.paths())


async def test_a_masked_column_is_never_a_parameter_and_others_are(shop: Shop) -> None:
    value = ROWS["customers"][0][2]
    await shop.ask(f"SELECT id FROM shop.all.customers WHERE email = '{value}'")
    await shop.ask(
        "SELECT id FROM shop.all.customers WHERE name = 'Customer 1' AND \"limit\" = '5'"
    )
    assert shop.api.paths() == ["/customers", "/customers?name=Customer%201&limit=5"]


async def test_a_row_that_is_hidden_is_not_read_by_its_key(shop: Shop) -> None:
    hidden = next(row[0] for row in ROWS["orders"] if row[2] != 7)
    seen = next(row[0] for row in ROWS["orders"] if row[2] == 7)
    text = "SELECT id, notes FROM shop.all.orders WHERE id = {}"
    assert (await shop.ask(text.format(hidden)))[1] == []
    assert (await shop.ask(text.format(seen)))[1] == [(seen, None)]


async def test_a_plan_and_a_description_show_no_value_and_send_nothing(shop: Shop) -> None:
    statement = Statement("SELECT email FROM shop.all.customers WHERE name = 'x'")
    names, rows = await shop.ask(Explain(statement))
    assert rows[0][0] == "shop.all.customers"
    assert KEY[:8] not in repr((names, rows))
    request = language_of(shop.source).rewrite(Prepare(statement), shop.source, RULES, NOTHING, KEY)
    assert request is not None
    engine = cast("Any", await open_engine(shop.source))
    described = await engine.prepare(permit_for(shop.source, request), NEVER)
    await engine.close()
    assert [(each.name, each.kind) for each in described.columns] == [("email", "text")]
    assert shop.api.asked == []


async def test_a_change_names_no_masked_column_and_no_resource_with_hidden_rows(
    shop: Shop,
) -> None:
    for text in (
        "UPDATE shop.all.customers SET email = 'x' WHERE id = 1",
        "UPDATE shop.all.customers SET data__email = 'x' WHERE id = 1",
        "UPDATE shop.all.customers SET name = 'x' WHERE id = 1 RETURNING \"EMAIL\"",
        "UPDATE shop.all.products SET title = (SELECT max(phone) FROM shop.all.customers)"
        " WHERE id = 1",
        "UPDATE shop.all.orders SET total = 1 WHERE id = 1",
        "DELETE FROM shop.all.orders WHERE id = 1",
        "EXEC shop.all.customers.get @id = 1",
        "EXEC shop.all.orders.get @id = 1",
    ):
        assert (await shop.refusal(text)).code is Code.POLICY_MASKED, text
    assert shop.api.asked == []


async def test_the_engine_refuses_such_a_change_by_itself(shop: Shop) -> None:
    """Whatever the language let pass: its names could be written in a way that it does not read."""
    permit_request = language_of(shop.source).rewrite(
        Query(Statement("SELECT 1 FROM shop.all.customers")), shop.source, RULES, NOTHING, KEY
    )
    assert permit_request is not None
    for text in (
        "UPDATE shop.all.customers SET email = 'x' WHERE id = 1",
        "UPDATE shop.all.orders SET total = 1 WHERE id = 1",
        "EXEC shop.all.customers.remove @id = 1",
    ):
        request = Query(Statement(text), engine_rules=permit_request.engine_rules)
        with pytest.raises(TidegateError) as caught:
            await shop.run(permit_for(shop.source, request, Effect.WRITE))
        assert caught.value.code is Code.POLICY_MASKED
    assert shop.api.asked == []


async def test_what_a_change_returns_is_masked_and_what_a_provider_says_of_it_left_out(
    shop: Shop,
) -> None:
    text = "UPDATE shop.all.customers SET name = 'New' WHERE id = 1 RETURNING *"
    names, rows = await shop.ask(text)
    row = dict(zip(names, rows[0], strict=True))
    email, phone = ROWS["customers"][0][2:4]
    assert (row["name"], row["email"], row["phone"]) == ("New", hashed(email), partly(phone))
    assert "secret" not in repr(rows)
    assert row["whole"] is None
    error = await shop.refusal("DELETE FROM shop.all.customers WHERE id = 1")
    assert "HTTP status 409. What the provider said is left out" in error.message
    assert "secret" not in f"{error.message}{error.hint}{error.details}"


@pytest.mark.parametrize(
    "rules",
    [
        DataRules(masks=(("email", "nothing"),)),
        DataRules(masks=(("shop.customers.email", "nothing"),)),
        DataRules(masks=(("shop.all.costumers.email", "nothing"),)),
        DataRules(masks=(("shop.all.customers.mail", "nothing"),)),
        DataRules(filters=(("customers", "id = 1"),)),
        DataRules(filters=(("shop.all.customers", '"tenant" = 1'),)),
        DataRules(filters=(("shop.all.customers", "id IN (SELECT id FROM shop.all.orders)"),)),
        DataRules(filters=(("shop.all.customers", "1) OR (1"),)),
        DataRules(masks=(("shop.all.vip.email", "nothing"),)),
    ],
)
async def test_a_rule_that_does_not_fit_lets_nothing_be_read(shop: Shop, rules: DataRules) -> None:
    text = "SELECT contact FROM shop.all.vip" if "vip" in repr(rules) else (
        "SELECT id FROM shop.all.customers"
    )  # fmt: skip
    error = await shop.refusal(text, rules)
    assert error.code is Code.POLICY_MASKED
    assert "Ask the operator" in (error.hint or "")


async def test_rules_for_a_view_hold_for_its_columns(shop: Shop) -> None:
    rules = DataRules(
        masks=(("shop.all.vip.contact", "hash"),), filters=(("shop.all.vip", "id > 10"),)
    )
    shown = (await shop.ask("SELECT * FROM shop.all.vip", rules))[1]
    assert row_texts(shown) == row_texts([
        (id, hashed(email), phone)
        for id, _, email, phone, spent in ROWS["customers"]
        if spent > 100 and id > 10
    ])  # fmt: skip
    text = "SELECT contact FROM shop.all.vip_orders WHERE contact LIKE 'secret%'"
    assert (await shop.ask(text, rules))[1] == []


async def test_a_digest_of_a_change_whose_values_a_query_gives_sends_nothing(shop: Shop) -> None:
    text = (
        "EXPLAIN DIGEST UPDATE shop.all.products SET title = 'x' WHERE id IN"
        " (SELECT id FROM shop.all.products)"
    )
    assert (await shop.ask(text))[1] == [("",)]
    assert shop.api.asked == []


async def test_a_preview_of_a_change_masks_what_is_there(shop: Shop) -> None:
    ((shown,),) = (
        await shop.ask("EXPLAIN PREVIEW UPDATE shop.all.customers SET name = 'x' WHERE id = 1")
    )[1]
    email = str(ROWS["customers"][0][2])
    assert email not in shown
    assert str(hashed(email)) in shown
    error = await shop.refusal("EXPLAIN PREVIEW DELETE FROM shop.all.orders WHERE id = 1")
    assert error.code is Code.POLICY_MASKED


INNER = '"shop.all.customers"'
"""How the text of a view's query, once its names are those of tables in SQLite, could name one."""


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM shop.all.vip, {INNER}(1)",
        f"SELECT * FROM shop.all.vip, {INNER}",
        f"SELECT * FROM shop.all.vip, temp.{INNER}",
        f"SELECT * FROM shop.all.vip WHERE 1 IN {INNER}",
        f"SELECT * FROM shop.all.vip, {INNER} c, (WITH {INNER} AS (SELECT 1) SELECT 1)",
        f"SELECT * FROM shop.all.vip, {INNER} c WHERE (WITH {INNER} AS (SELECT 1) SELECT 1)",
        f"WITH a AS (WITH {INNER} AS (SELECT 1) SELECT 1) SELECT c.* FROM shop.all.vip, {INNER} c",
    ],
)
async def test_what_a_view_reads_is_not_to_be_had_without_the_view(shop: Shop, text: str) -> None:
    """The engine itself does not find it, whatever the judge says of the statement."""
    engine = cast("Any", await open_engine(shop.source))
    with pytest.raises(TidegateError) as caught:
        await engine.run(permit_for(shop.source, Query(Statement(text))), NEVER)
    await engine.close()
    assert "secret" not in f"{caught.value.message} {caught.value.details}"
    assert shop.api.asked == []


LISTED = DataRules(only=("shop.all.products",))
BEHIND = "(SELECT email FROM shop.all.customers ORDER BY id LIMIT 1)"


@pytest.mark.parametrize("explain", ["EXPLAIN", "EXPLAIN QUERY PLAN", "EXPLAIN DIGEST"])
@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE shop.all.products SET title = 'x' WHERE id = {BEHIND}",
        f"UPDATE shop.all.products SET title = {BEHIND} WHERE id = 1",
        f"DELETE FROM shop.all.products WHERE id IN {BEHIND}",
        f"INSERT INTO shop.all.products(title) {BEHIND[1:-1]}",
        f"REPLACE shop.all.products SET title = {BEHIND} WHERE id = 1",
        f"INSERT INTO shop.all.products(title) WITH a AS {BEHIND} SELECT email FROM a",
    ],
)
async def test_what_is_explained_sends_no_request_and_shows_no_value(
    shop: Shop, explain: str, change: str
) -> None:
    """A value of the query would be in an error: it fits no parameter."""
    try:
        said = repr(await shop.ask(f"{explain} {change}", LISTED))
    except TidegateError as error:
        said = f"{error.message} {error.details}"
    assert "secret" not in said
    assert shop.api.asked == []
    assert (await shop.refusal(f"EXPLAIN PREVIEW {change}", LISTED)).code is Code.POLICY_TABLE
    assert shop.api.asked == []


@pytest.mark.parametrize("has_columns", [True, False])
@pytest.mark.parametrize("written", ["phoneNumber", "phone_number", "PhoneNumber"])
async def test_a_mask_by_the_provider_s_own_name_holds_where_columns_have_another(
    tmp_path: Path, written: str, has_columns: bool
) -> None:
    def renamed(*asked: Any) -> Reply:
        status, body = answer(*asked)[:2]
        return Reply(status, json.loads(json.dumps(body).replace('"phone"', '"phoneNumber"')))

    shop = Shop(tmp_path, renamed)
    home = tmp_path / "src" / "shop" / "v00.00.00000"
    provider = home / "provider.yaml"
    provider.write_text(
        provider.read_text().replace("config:", "config:\n  snake_case_aliases: true")
    )
    document = home / "services" / "all.yaml"
    tree = json.loads(document.read_text().replace('"phone"', '"phoneNumber"'))
    listed = tree["paths"]["/customers"]["get"]
    listed["parameters"].append({"name": "phoneNumber", "in": "query", "schema": {}})
    if not has_columns:
        for each in (listed, tree["paths"]["/customers/{id}"]["get"]):
            each["responses"]["200"]["content"]["application/json"]["schema"] = {}
    document.write_text(json.dumps(tree))
    rules = DataRules(masks=((f"shop.all.customers.{written}", "partial"),))
    phones = [row[3] for row in ROWS["customers"]]
    try:
        for text in (
            "SELECT phone_number FROM shop.all.customers",
            'SELECT "Phone_Number" FROM shop.all.customers',
            "SELECT * FROM shop.all.customers",
            "SELECT phoneNumber FROM shop.all.customers",
            "SELECT _ FROM shop.all.customers",
            "SELECT id FROM shop.all.customers WHERE phoneNumber = 'x5'",
            "UPDATE shop.all.customers SET phoneNumber = 'x' WHERE id = 5 RETURNING phone_number",
        ):
            try:
                said = repr(await shop.ask(text, rules))
            except TidegateError as error:
                said = error.message
            assert not [each for each in phones if each and repr(each) in said], text
        assert shop.api.paths("PATCH") == []
        assert not [each for each in shop.api.paths() if "x5" in each]
    finally:
        shop.api.close()
