"""Forms of documents and statements that the original's own tests use, beside those of XML.

Each test names the file of `test/robot/functional` in `stackql/stackql` whose behaviour it follows;
documents, replies and expectations are our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.cloud.contract.conftest import Ask
from products.cloud.support.cloud_forms import (
    HOST,
    Asked,
    FormsApi,
    document,
    given,
    method,
    operation,
    resource,
    write_provider,
)
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source

TEXT = {"type": "string"}
ECHO = {
    "type": "object",
    "properties": {
        "VpcId": TEXT, "SubnetId": TEXT, "asked": TEXT, "body": TEXT, "ok": {"type": "boolean"},
    },
}  # fmt: skip
SETTINGS_BODY = {
    "type": "object",
    "properties": {
        "storageClass": TEXT,
        "retryCount": {"type": "integer"},
        "periodInHours": {"type": "number"},
        "enabled": {"type": "boolean"},
        "either": {"oneOf": [{"type": "integer"}, TEXT]},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "state": {"type": "object", "x-stackQL-stringOnly": True},
        "id": {"type": "string", "readOnly": True},
        "parts": {
            "type": "array", "items": {"properties": {"name": TEXT, "size": {"type": "integer"}}},
        },
    },
}  # fmt: skip
PASCAL = {"nativeCasing": "pascal"}
CASING = document(
    {
        "/echo": {
            "get": operation(ECHO, [given("VpcId"), given("SubnetId"), given("IPProtocol")]),
            "post": operation(ECHO, [given("Zone", required=True)], SETTINGS_BODY),
        },
        "/strict": {"get": operation(ECHO, [given("VpcId", required=True)])},
        "/heads": {"get": operation(ECHO, [given("open-organization", "header")])},
        "/items/{ItemId}/start": {
            "post": operation(ECHO, [given("ItemId", "path", required=True), given("VpcId")])
        },
        "/files/{Bucket}/{Key+}": {
            "get": operation(
                ECHO,
                [given("Bucket", "path", required=True), given("Key", "path", required=True)],
            )
        },
        "/filtered": {
            "get": operation(
                ECHO,
                [
                    {
                        "name": "filter",
                        "in": "query",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                ],
            )
        },
    },
    {},
    [
        resource(
            "echo",
            {
                "list": method("/echo", request=PASCAL, objectKey="$"),
                "create": method("/echo", "post", request=PASCAL, objectKey="$"),
            },
            select="list",
            insert="create",
            update="create",
        ),
        resource("strict", {"list": method("/strict", request=PASCAL)}, select="list"),
        resource("wired", {"list": method("/strict")}, select="list"),
        resource(
            "heads", {"list": method("/heads", request={"nativeCasing": "kebab"})}, select="list"
        ),
        resource("items", {"start": method("/items/{ItemId}/start", "post", request=PASCAL)}),
        resource("files", {"get": method("/files/{Bucket}/{Key+}", objectKey="$")}, select="get"),
        resource("filtered", {"list": method("/filtered", objectKey="$")}, select="list"),
        resource(
            "posted",
            {"list": method("/echo", "post", request={"base": "{}", **PASCAL}, objectKey="$")},
            select="list",
        ),
        {
            **resource("borrowed", {"list": method("/echo")}, select="list"),
            "sqlVerbs": {
                "insert": [
                    {"$ref": "#/components/x-stackQL-resources/echo/methods/create"},
                ],
                "exec": [],
            },
        },
    ],
)
CASING["components"]["x-stackQL-resources"]["posted"]["methods"]["list"]["operation"] = {
    "$ref": "#/paths/~1search/post"
}
CASING["paths"]["/search"] = {"post": operation(ECHO, None, {"properties": {"words": TEXT}})}

THING = {
    "type": "object",
    "properties": {"Identifier": TEXT, "Properties": TEXT},
}
THINGS = {"type": "object", "properties": {"Things": {"type": "array", "items": THING}}}
SHOWN = (
    "JSON_EXTRACT(Properties, '$.Name') AS Name,"
    " IIF(JSON_EXTRACT(Properties, '$.Block') = 0, 'false', 'true') AS Block"
)


def _view(name: str, sql: str, predicate: str = 'sqlDialect == "sqlite3"', **more: Any) -> Any:
    views = {"select": {"predicate": predicate, "ddl": sql, **more}}
    return {"id": name, "name": name, "methods": {}, "sqlVerbs": {}, "config": {"views": views}}


VIEWS = document(
    {
        "/things": {
            "get": operation(
                THINGS,
                [
                    given("region", required=True),
                    given("TypeName", required=True),
                    given("Owner"),
                ],
            )
        },
        "/thing": {
            "get": operation(
                THINGS,
                [
                    given("region", required=True),
                    given("TypeName", required=True),
                    given("Id", required=True),
                ],
            )
        },
    },
    {},
    [
        resource(
            "things",
            {
                "list": method("/things", objectKey="$.Things"),
                "get": method("/thing", objectKey="$.Things"),
            },
            select="get list",
        ),
        _view(
            "buckets",
            f"SELECT {SHOWN} FROM forms.views.things WHERE region = 'eu-1'"
            " and TypeName = 'Bucket'\n;\n",
        ),
        _view(
            "ordered",
            f"SELECT {SHOWN} FROM forms.views.things t WHERE region = 'eu-1' AND"
            " TypeName = 'Bucket' AND (Properties LIKE '%' OR 1 = 0) ORDER BY 1 -- by name",
        ),
        _view(
            "details",
            f"SELECT region, Id, {SHOWN} FROM forms.views.things WHERE TypeName = 'Bucket'"
            " AND Id = '<id>' AND region = 'us-1'",
        ),
        _view(
            "either",
            f"SELECT Id, {SHOWN} FROM forms.views.things WHERE TypeName = 'Bucket'"
            " AND Id = '<id>' AND region = 'us-1'",
            'sqlDialect == "sqlite3" && requiredParams == [ "Id", region ]',
            fallback={
                "predicate": 'sqlDialect == "sqlite3"',
                "ddl": f"SELECT {SHOWN} FROM forms.views.things"
                " WHERE region = 'eu-1' AND TypeName = 'Bucket'",
            },
        ),
        _view("shouting", "SELECT upper(Name) AS Shout FROM forms.views.buckets"),
        _view("labelled", 'SELECT Name, "a label" AS "Label" FROM forms.views.buckets'),
    ],
)
ROUTED = document(
    {"/items": {"get": operation(THINGS)}},
    {},
    [resource("items", {"list": method("/items", objectKey="$.Things")}, select="list")],
    servers=[
        {
            "url": f"{HOST}/at/{{deployment}}",
            "variables": {"deployment": {"x-stackQL-envVar": "TIDEGATE_TEST_DEPLOYMENT"}},
        }
    ],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    services = {"casing": CASING, "views": VIEWS, "routed": ROUTED}
    return write_provider(tmp_path_factory.mktemp("registry"), services, snake_case_aliases=False)


@pytest.fixture(scope="module")
def snake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("registry")
    return write_provider(place, {"casing": CASING}, snake_case_aliases=True)


@pytest.fixture(scope="module")
def one_api() -> Iterator[FormsApi]:
    api = FormsApi()
    yield api
    api.close()


@pytest.fixture
def api(one_api: FormsApi) -> FormsApi:
    one_api.reset()
    for path in ("/echo", "/strict", "/heads", "/items/b3/start", "/filtered", "/search"):
        one_api.replies[path] = echo
    return one_api


def echo(asked: Asked) -> str:
    query = asked.target.partition("?")[2]
    heads = {name.lower(): value for name, value in asked.headers.items()}
    vpc = [part[6:] for part in query.split("&") if part.startswith("VpcId=")]
    shown = {"asked": query or heads.get("open-organization"), "body": asked.body, "ok": True}
    return json.dumps({**shown, "VpcId": vpc[0] if vpc else None})


def asking(folder: Path, api: FormsApi, access: Any = "write") -> Ask:
    url = f"cloud://{folder}"
    options = tuple(api.options.items())
    return Ask(Source("c", "c", url, *engine_of(url), access=access, options=options))


@pytest.fixture
def ask(folder: Path, api: FormsApi) -> Ask:
    return asking(folder, api)


@pytest.fixture
def snake(snake_folder: Path, api: FormsApi) -> Ask:
    return asking(snake_folder, api)


# stackql_casing.robot


@pytest.mark.parametrize(
    ("statement", "query"),
    [
        ("vpc_id = 'v1'", "VpcId=v1"),
        ("VpcId = 'v1'", "VpcId=v1"),
        ("vpc_id = 'v1' AND SubnetId = 's9'", "VpcId=v1&SubnetId=s9"),
        ("ip_protocol = 'tcp'", "IPProtocol=tcp"),
    ],
)
async def test_a_parameter_has_its_name_in_sql_and_the_one_of_the_api(
    snake: Ask, statement: str, query: str
) -> None:
    assert await snake(f"SELECT asked FROM forms.casing.echo WHERE {statement}") == [(query,)]


async def test_a_column_that_is_named_as_the_api_does_keeps_that_name(
    snake: Ask, api: FormsApi
) -> None:
    where = "WHERE e.VpcId = 'v7'"
    assert await snake(f"SELECT VpcId, e.vpc_id FROM forms.casing.echo e {where}") == [("v7", "v7")]
    assert [each.name for each in snake.cursor.columns] == ["VpcId", "vpc_id"]
    grouped = "GROUP BY VpcId HAVING count(VpcId) = 1 ORDER BY VpcId"
    assert await snake(f"SELECT count(*) FROM forms.casing.echo e {where} {grouped}") == [(1,)]
    names = [name for name, _ in await snake.prepared("SELECT * FROM forms.casing.echo")]
    assert names == ["vpc_id", "subnet_id", "asked", "body", "ok"]
    refused = await snake.refusal("SELECT VpcIdd FROM forms.casing.echo")
    assert "VpcIdd" in refused.message


async def test_required_parameters_may_have_either_name(snake: Ask) -> None:
    for name in ("vpc_id", "VpcId"):
        rows = await snake(f"SELECT asked FROM forms.casing.strict WHERE {name} = 'r'")
        assert rows == [("VpcId=r",)]


@pytest.mark.parametrize("name", ["open_organization", '"open-organization"'])
async def test_a_hyphen_in_a_name_is_an_underscore_in_sql(ask: Ask, name: str) -> None:
    rows = await ask(f"SELECT asked FROM forms.casing.heads WHERE {name} = 'org-x'")
    assert rows == [("org-x",)]


async def test_methods_are_shown_by_verb_and_name_with_the_names_of_sql(
    snake: Ask, ask: Ask
) -> None:
    assert await snake("SHOW METHODS IN forms.casing.strict") == [("list", "vpc_id", "SELECT")]
    assert await snake("SHOW METHODS IN forms.casing.wired") == [("list", "VpcId", "SELECT")]
    assert await ask("SHOW METHODS IN forms.views.things") == [
        ("get", "Id, TypeName, region", "SELECT"),
        ("list", "TypeName, region", "SELECT"),
    ]


async def test_a_body_that_no_column_fills_is_that_of_the_document(snake: Ask) -> None:
    assert await snake("SELECT body, ok FROM forms.casing.posted") == [("{}", True)]


@pytest.mark.parametrize("name", ["data__storage_class", "data__storageClass"])
async def test_a_field_of_a_body_has_its_name_in_sql_and_the_one_of_the_api(
    snake: Ask, name: str
) -> None:
    (row,) = await snake(
        f"INSERT INTO forms.casing.echo({name}, zone) VALUES ('NEARLINE', 'z') RETURNING body"
    )
    assert json.loads(row[0]) == {"storageClass": "NEARLINE"}


@pytest.mark.parametrize("names", [("ItemId", "VpcId"), ("item_id", "vpc_id")])
async def test_exec_takes_either_name(snake: Ask, api: FormsApi, names: tuple[str, str]) -> None:
    await snake(f"EXEC forms.casing.items.start @{names[0]} = 'b3', @{names[1]} = 'v3'")
    refused = await snake.refusal(
        "EXEC forms.casing.items.start @ItemId = 'b3' @@json = '{\"a\":1}'"
    )
    assert "no request body" in refused.message  # and so it was read
    assert api.asked[-1].target == "/items/b3/start?VpcId=v3"


async def test_a_body_for_a_method_without_one_is_refused(snake: Ask, api: FormsApi) -> None:
    refused = await snake.refusal(
        "EXEC forms.casing.items.start @ItemId = 'b3', @@json = '{\"a\": 1}'"
    )
    assert "has no request body schema" in refused.message
    assert api.asked == []


# stackql_body_coercion.robot


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("period_in_hours", "'24'", 24),
        ("period_in_hours", "'1.5e3'", 1500.0),
        ("enabled", "'true'", True),
        ("enabled", "0", False),
        ("retry_count", "'3'", 3),
        ("storage_class", "12", "12"),
        ("either", "'x'", "x"),
        ("labels", '\'{"a": "b"}\'', {"a": "b"}),
        ("labels", 'string(\'{"a": "b"}\')', '{"a": "b"}'),
        ("state", '\'{"a": "b"}\'', '{"a": "b"}'),
        ("labels", "JSON('{\"a\": 1}')", {"a": 1}),
    ],
)
async def test_a_value_is_sent_as_the_schema_has_it(
    snake: Ask, api: FormsApi, name: str, value: str, sent: Any
) -> None:
    (wire,) = [
        each for each in SETTINGS_BODY["properties"] if each.lower() == name.replace("_", "")
    ]
    await snake(f"INSERT INTO forms.casing.echo(data__{name}, zone) SELECT {value}, 'z'")
    await snake(f"INSERT INTO forms.casing.echo(data__{name}, zone) VALUES ({value}, 'z')")
    await snake(f"UPDATE forms.casing.echo SET data__{name} = {value} WHERE zone = 'z'")
    await snake(f"UPDATE forms.casing.echo SET data__{name} = {value}, zone = 'z'")
    assert [json.loads(each.body) for each in api.asked] == [{wire: sent}] * 4


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("period_in_hours", "'abc'", "number"),
        ("retry_count", "'1.5'", "integer"),
        ("retry_count", "1.5", "integer"),
        ("enabled", "'maybe'", "boolean"),
    ],
)
async def test_a_value_that_the_schema_cannot_have_is_refused_before_it_is_sent(
    snake: Ask, api: FormsApi, name: str, value: str, kind: str
) -> None:
    refused = await snake.refusal(
        f"UPDATE forms.casing.echo SET data__{name} = {value} WHERE zone = 'z'"
    )
    assert refused.code is Code.ARGUMENT_INVALID
    assert f"cannot be coerced to schema type '{kind}'" in refused.message
    assert api.asked == []


# stackql_mocked_from_cmd_line.robot


async def test_a_verb_may_name_the_method_of_another_resource(snake: Ask, api: FormsApi) -> None:
    await snake("INSERT INTO forms.casing.borrowed(data__storage_class, zone) SELECT 'a', 'z'")
    assert (api.asked[-1].verb, api.asked[-1].target) == ("POST", "/echo?Zone=z")


async def test_a_greedy_parameter_of_a_path_is_one(ask: Ask, api: FormsApi) -> None:
    api.replies["/files/b/a%2Fc"] = json.dumps({"asked": "found"})
    rows = await ask(
        "SELECT asked FROM forms.casing.files WHERE \"Bucket\" = 'b' AND \"Key\" = 'a/c'"
    )
    assert rows == [("found",)]


async def test_a_parameter_with_content_is_sent_as_it_is_written(ask: Ask, api: FormsApi) -> None:
    await ask("SELECT asked FROM forms.casing.filtered WHERE filter = '{\"a\": 1}'")
    assert api.asked[-1].target == "/filtered?filter=%7B%22a%22%3A%201%7D"


async def test_show_insert_gives_a_statement_with_a_place_for_each_value(snake: Ask) -> None:
    ((text,),) = await snake("SHOW INSERT INTO forms.casing.echo")
    assert snake.cursor.columns[0].name == "insert_statement"
    assert text.splitlines()[:4] == [
        "INSERT INTO forms.casing.echo(",
        "  zone,",
        "  data__storage_class,",
        "  data__retry_count,",
    ]
    for line in (
        "  '{{ .values.zone }}',",
        "  {{ .values.data__retry_count }},",
        '  \'{ "{{ .values.data__labels[0].key }}": "{{ .values.data__labels[0].val }}" }\',',
        '  \'[ { "name": "{{ .values.data__parts[0].name }}",'
        ' "size": {{ .values.data__parts[0].size }} } ]\'',
    ):
        assert line in text.splitlines()
    assert "data__id" not in text
    ((short,),) = await snake("SHOW INSERT /*+ REQUIRED */ INTO forms.casing.echo")
    assert short.split() == [
        *("INSERT", "INTO", "forms.casing.echo(", "zone", ")", "SELECT"),
        *("'{{", ".values.zone", "}}'", ";"),
    ]
    refused = await snake.refusal("SHOW INSERT INTO forms.casing.strict")
    assert refused.message.startswith("cannot find matching operation")


def things(asked: Asked) -> str:
    rows = [
        {"Identifier": name, "Properties": json.dumps({"Name": name, "Block": block})}
        for name, block in (("one", True), ("two", False))
    ]
    if "Id=" in asked.target:
        rows = rows[:1]
    return json.dumps({"Things": rows})


@pytest.fixture
def view(ask: Ask, api: FormsApi) -> Ask:
    api.replies["/things"] = things
    api.replies["/thing"] = things
    return ask


async def test_a_view_passes_on_a_parameter_that_it_does_not_show(view: Ask, api: FormsApi) -> None:
    for name in ("buckets", "ordered"):
        api.asked.clear()
        rows = await view(f"SELECT Name, Block FROM forms.views.{name} WHERE Id = 'one'")
        assert rows == [("one", "true")]
        assert [each.target for each in api.asked] == ["/thing?region=eu-1&TypeName=Bucket&Id=one"]
    assert (
        await view("SELECT * FROM forms.views.buckets b WHERE b.Id = 'one' AND b.Name = 'two'")
        == []
    )
    api.asked.clear()
    rows = await view(
        "SELECT Name FROM forms.views.ordered WHERE Owner IN ('a', 'b') AND Name='two'"
    )
    assert rows == [("two",), ("two",)]
    assert sorted(each.target for each in api.asked) == [
        "/things?region=eu-1&TypeName=Bucket&Owner=a",
        "/things?region=eu-1&TypeName=Bucket&Owner=b",
    ]


async def test_a_placeholder_that_the_view_does_not_show_has_the_value_from_outside(
    view: Ask, api: FormsApi
) -> None:
    rows = await view("SELECT Name FROM forms.views.buckets WHERE region = 'ap-1' AND Name = 'two'")
    assert rows == [("two",)]
    assert [each.target for each in api.asked] == ["/things?region=ap-1&TypeName=Bucket"]


async def test_the_first_view_whose_parameters_are_given_is_used(view: Ask, api: FormsApi) -> None:
    rows = await view("SELECT * FROM forms.views.either WHERE Id = 'one' AND region = 'us-2'")
    assert rows == [("one", "one", "true")]
    assert await view("SELECT * FROM forms.views.either ORDER BY Name") == [
        ("one", "true"), ("two", "false"),
    ]  # fmt: skip


async def test_a_quoted_name_that_is_not_there_is_a_text_in_a_view_of_a_document_alone(
    view: Ask, api: FormsApi
) -> None:
    rows = await view('SELECT "Name", l."Label" FROM forms.views.labelled AS "l" ORDER BY "Name"')
    assert rows == [("one", "a label"), ("two", "a label")]
    for text in (
        'SELECT "Nmae" FROM forms.views.labelled',
        'SELECT Name FROM forms.views.labelled WHERE "Label" = "a lable"',
        'SELECT "Nmae" FROM forms.views.buckets',
        'SELECT b.Name FROM forms.views.buckets b WHERE b.Name = "one"',
    ):
        with pytest.raises(TidegateError) as caught:
            await view(text)
        assert caught.value.code is Code.SQL_FAILED
        assert "no such column" in caught.value.message
    assert "single quotes" in (caught.value.hint or "")


async def test_each_part_of_a_union_gives_a_view_its_own_values(view: Ask, api: FormsApi) -> None:
    parts = [
        f"SELECT region, Name FROM forms.views.details WHERE Id = '{name}' AND region = '{name}-r'"
        for name in ("a", "b")
    ]
    rows = await view(f"{' UNION ALL '.join(parts)} ORDER BY 1")
    assert rows == [("a-r", "one"), ("b-r", "one")]
    assert sorted(each.target for each in api.asked) == [
        "/thing?region=a-r&TypeName=Bucket&Id=a",
        "/thing?region=b-r&TypeName=Bucket&Id=b",
    ]


async def test_a_condition_that_need_not_hold_is_no_value_of_a_view(
    view: Ask, api: FormsApi
) -> None:
    rows = await view("SELECT Name FROM forms.views.details WHERE Id = 'x' OR Name = 'one'")
    assert rows == [("one",)]
    assert [each.target for each in api.asked] == ["/thing?region=us-1&TypeName=Bucket&Id=%3Cid%3E"]


async def test_a_view_over_a_view_reads_through_both(view: Ask, api: FormsApi) -> None:
    rows = await view("SELECT Shout FROM forms.views.shouting WHERE Id = 'one'")
    assert rows == [("ONE",)]
    assert [each.target for each in api.asked] == ["/thing?region=eu-1&TypeName=Bucket&Id=one"]


async def test_a_name_that_nothing_in_a_view_takes_is_an_error(view: Ask, api: FormsApi) -> None:
    refused = await view.refusal("SELECT Name FROM forms.views.buckets WHERE Colour = 'red'")
    assert "Colour" in refused.message
    assert api.asked == []


# stackql_server_variables.robot


async def test_a_variable_of_the_server_may_come_from_the_environment(
    ask: Ask, api: FormsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = "SELECT Identifier FROM forms.routed.items"
    for place in ("env-place", "where-place"):
        api.replies[f"/at/{place}/items"] = json.dumps({"Things": [{"Identifier": place}]})
    monkeypatch.delenv("TIDEGATE_TEST_DEPLOYMENT", raising=False)
    refused = await ask.refusal(statement)
    assert "cannot find any viable servers" in refused.message
    assert "TIDEGATE_TEST_DEPLOYMENT" in str(refused.hint)
    assert await ask("SHOW METHODS IN forms.routed.items") == [("list", "deployment", "SELECT")]
    given = f"{statement} WHERE deployment = 'where-place'"
    assert await ask(given) == [("where-place",)]
    monkeypatch.setenv("TIDEGATE_TEST_DEPLOYMENT", "env-place")
    assert await ask(statement) == [("env-place",)]
    assert await ask(given) == [("where-place",)]
    assert await ask("SHOW METHODS IN forms.routed.items") == [("list", "", "SELECT")]


async def test_a_column_of_booleans_has_true_and_false(snake: Ask) -> None:
    rows = await snake("SELECT ok, ok = 1 AS is_one, typeof(ok) FROM forms.casing.echo")
    assert [[type(each) for each in row] for row in rows] == [[bool, int, str]]
    assert rows == [(True, 1, "integer")]
    (row,) = await snake(
        "INSERT INTO forms.casing.echo(zone) VALUES ('z') RETURNING ok, NOT ok AS is_bad"
    )
    assert row == (True, 0) and type(row[0]) is bool
