"""Replies in XML whose rows a document names by an XPath, without a transform.

Follows the tests of the original on its older documents of EC2, IAM, S3 and Route 53: elements at a
path become rows, with the names of their elements or those of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.cloud.contract.conftest import Ask
from products.cloud.support.cloud_forms import (
    FormsApi,
    document,
    given,
    method,
    operation,
    resource,
    schema,
    write_provider,
)
from tidegate.engines.registry import engine_of
from tidegate.errors import Code
from tidegate.model.sources import Source

TEXT = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "Disk": {
        "type": "object",
        "properties": {
            "diskId": {"allOf": [TEXT, {"description": "its name"}]},
            "size": {"type": "integer"},
            "encrypted": {"type": "boolean"},
            "ratio": {"type": "number"},
            "Label": {"allOf": [{"type": "string"}, {"xml": {"name": "displayName"}}]},
            "tagSet": {
                "type": "array",
                "items": {
                    "allOf": [
                        {"properties": {"key": TEXT, "value": TEXT}},
                        {"xml": {"name": "item"}},
                    ]
                },
            },
            "place": {"type": "object", "properties": {"zone": TEXT, "host": TEXT}},
        },
    },
    "Disks": {
        "type": "array",
        "items": {"allOf": [schema("Disk"), {"xml": {"name": "item"}}]},
    },
    "DisksResult": {
        "type": "object",
        "properties": {
            "diskSet": {"allOf": [schema("Disks"), {"description": "all"}]},
            "nextToken": TEXT,
        },
    },
    "UsersResponse": {"type": "object", "properties": {"ListUsersResult": schema("UsersResult")}},
    "UsersResult": {
        "type": "object",
        "properties": {
            "Users": {
                "type": "array",
                "items": {"type": "object", "properties": {"UserName": TEXT, "Arn": TEXT}},
            }
        },
    },
    "Objects": {
        "type": "object",
        "properties": {
            "Contents": {
                "type": "array",
                "items": {"properties": {"Key": TEXT, "Size": {"type": "integer"}}},
            }
        },
    },
    "Location": {"type": "object", "properties": {"LocationConstraint": TEXT}},
    "Zones": {
        "type": "object",
        "properties": {
            "HostedZones": {
                "type": "array",
                "items": {
                    "allOf": [
                        {"properties": {"Id": TEXT, "Name": TEXT}},
                        {"xml": {"name": "HostedZone"}},
                    ]
                },
            }
        },
    },
}  # fmt: skip


def _xml(name: str, key: str | None, shown: Any) -> tuple[str, Any, Any]:
    path = f"/{name}"
    where = {} if key is None else {"objectKey": key}
    listed = method(path, mediaType="text/xml", **where)
    node = {"get": operation(shown, [given("Marker")], media="text/xml")}
    return path, node, resource(name, {"list": listed}, select="list")


FOUND = [
    _xml("disks", "/*/diskSet/item", schema("DisksResult")),
    _xml("named_disks", "/DescribeDisksResponse/diskSet/item", schema("DisksResult")),
    _xml("any_disks", "//diskSet/item", schema("DisksResult")),
    _xml("disk_list", "/*/diskSet", schema("DisksResult")),
    _xml("users", "/*/ListUsersResult/Users/member", schema("UsersResponse")),
    _xml("objects", "/*/Contents", schema("Objects")),
    _xml("location", "/*", schema("Location")),
    _xml("plain_location", None, schema("Location")),
    _xml("zones", "/*/HostedZones/HostedZone", schema("Zones")),
    _xml("zone_list", "/*/HostedZones", schema("Zones")),
    _xml("open_things", "/*/things/thing", {"type": "object"}),
]
PAGES = {
    "pagination": {
        "requestToken": {"key": "Marker", "location": "query"},
        "responseToken": {"key": "/*/nextToken/text()", "location": "body"},
    }
}
PATHS = {path: node for path, node, _ in FOUND}
PAGED = _xml("paged_disks", "/*/diskSet/item", schema("DisksResult"))
DOCUMENT = document(
    {**PATHS, PAGED[0]: PAGED[1]},
    SCHEMAS,
    [*[each for *_, each in FOUND], {**PAGED[2], "config": PAGES}],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_provider(tmp_path_factory.mktemp("registry"), {"xml": DOCUMENT})


@pytest.fixture(scope="module")
def one_api() -> Iterator[FormsApi]:
    api = FormsApi()
    yield api
    api.close()


@pytest.fixture
def api(one_api: FormsApi) -> FormsApi:
    one_api.reset()
    return one_api


@pytest.fixture
def ask(folder: Path, api: FormsApi) -> Ask:
    url = f"cloud://{folder}"
    return Ask(Source("c", "c", url, *engine_of(url), options=tuple(api.options.items())))


DISKS = """<?xml version="1.0" encoding="UTF-8"?>
<DescribeDisksResponse xmlns="http://disks.example/doc/"><requestId>r-1</requestId><diskSet>
  <item><diskId>d-2</diskId><size>8</size><encrypted>false</encrypted><ratio>0.5</ratio>
    <displayName>second</displayName><place><zone>a</zone><host>h</host></place>
    <tagSet><item><key>k</key><value>v &amp; w</value></item></tagSet></item>
  <item><diskId>d-1</diskId><size>12345678901234567890</size><encrypted>true</encrypted></item>
</diskSet></DescribeDisksResponse>"""


@pytest.mark.parametrize("name", ["disks", "named_disks", "any_disks", "disk_list"])
async def test_elements_at_a_path_are_rows_with_the_types_of_the_schema(
    ask: Ask, api: FormsApi, name: str
) -> None:
    api.replies[f"/{name}"] = DISKS
    columns = "diskId, size, encrypted, ratio, Label, place, tagSet"
    assert await ask(f"SELECT {columns} FROM forms.xml.{name} ORDER BY diskId") == [
        ("d-1", "12345678901234567890", 1, None, None, None, None),
        (
            *("d-2", 8, 0, 0.5, "second", '{"zone":"a","host":"h"}'),
            '[{"key":"k","value":"v & w"}]',
        ),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<R><requestId>r</requestId><diskSet/></R>",
        "<R><diskSet> </diskSet></R>",
        "<R><requestId>r</requestId></R>",
    ],
)
async def test_an_empty_list_is_no_row(ask: Ask, api: FormsApi, text: str) -> None:
    for name in ("disks", "any_disks", "disk_list"):
        api.replies[f"/{name}"] = text
        assert await ask(f"SELECT diskId FROM forms.xml.{name}") == []


async def test_a_schema_around_the_root_element_is_seen_through(ask: Ask, api: FormsApi) -> None:
    api.replies["/users"] = (
        "<ListUsersResponse><ListUsersResult><Users>"
        "<member><UserName>bob</UserName><Arn>arn:2</Arn></member>"
        "<member><UserName>ann</UserName></member></Users><IsTruncated>false</IsTruncated>"
        "</ListUsersResult></ListUsersResponse>"
    )
    rows = await ask("SELECT UserName, Arn FROM forms.xml.users ORDER BY UserName ASC")
    assert rows == [("ann", None), ("bob", "arn:2")]
    assert [name for name, _ in await ask.prepared("SELECT * FROM forms.xml.users")] == [
        "UserName",
        "Arn",
    ]


async def test_a_flat_list_has_each_of_its_elements(ask: Ask, api: FormsApi) -> None:
    api.replies["/objects"] = (
        "<ListBucketResult><Name>b</Name><Contents><Key>a.txt</Key><Size>13</Size></Contents>"
        "<Contents><Key>b c.txt</Key><Size>0</Size></Contents></ListBucketResult>"
    )
    rows = await ask('SELECT "Key", Size FROM forms.xml.objects ORDER BY "Key" ASC')
    assert rows == [("a.txt", 13), ("b c.txt", 0)]


@pytest.mark.parametrize("name", ["location", "plain_location"])
async def test_an_element_of_text_alone_is_its_own_column(
    ask: Ask, api: FormsApi, name: str
) -> None:
    statement = f"SELECT LocationConstraint FROM forms.xml.{name}"
    api.replies[f"/{name}"] = '<LocationConstraint xmlns="http://s3/">eu-1</LocationConstraint>'
    assert await ask(statement) == [("eu-1",)]
    api.replies[f"/{name}"] = "<LocationConstraint/>"
    assert await ask(statement) == [(None,)]


@pytest.mark.parametrize("name", ["zones", "zone_list"])
async def test_a_list_of_one_member_is_one_row(ask: Ask, api: FormsApi, name: str) -> None:
    api.replies[f"/{name}"] = (
        "<R><HostedZones><HostedZone><Id>/z/1</Id><Name>a.example.</Name></HostedZone>"
        "</HostedZones></R>"
    )
    assert await ask(f"SELECT Id, Name FROM forms.xml.{name}") == [("/z/1", "a.example.")]


async def test_elements_that_the_schema_does_not_show_are_there_by_their_names(
    ask: Ask, api: FormsApi
) -> None:
    api.replies["/open_things"] = "<R><things><thing><a>1</a><b><c>x</c></b></thing></things></R>"
    assert await ask("SELECT a, b FROM forms.xml.open_things") == [("1", '{"c":"x"}')]


async def test_a_path_leads_to_the_token_of_the_next_page(ask: Ask, api: FormsApi) -> None:
    def page(asked: Any) -> str:
        last = "Marker=two" in asked.target
        token = "" if last else "<nextToken>two</nextToken>"
        name = "b" if last else "a"
        return f"<R><diskSet><item><diskId>{name}</diskId></item></diskSet>{token}</R>"

    api.replies["/paged_disks"] = page
    assert await ask("SELECT diskId FROM forms.xml.paged_disks") == [("a",), ("b",)]


async def test_what_is_no_xml_is_an_error_and_no_row(ask: Ask, api: FormsApi) -> None:
    refused = "<Error><Code>AccessDenied</Code></Error>", "<html><body>Sign in</body></html>"
    for text in ('{"diskSet": []}', "<R><diskSet>", "nothing", *refused):
        api.replies["/disks"] = text
        error = await ask.refusal("SELECT diskId FROM forms.xml.disks")
        assert error.code is Code.PROVIDER_REPLY
