"""Provider documents become methods with their parameters, bodies, columns and verbs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from products.cloud.support.cloud_registry import PROVIDER, STOCK, write_registry
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.authoring.check import check_registry
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.model import Method, Pagination
from tidegate.products.cloud.documents.names import snake_case
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.schema import parse_object_key
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.http.requests import build_request


def stock(folder: Path, text: str = STOCK) -> ServiceDocument:
    registry = RegistryFolder(write_registry(folder, text))
    provider = registry.provider("shop/v00.00.00000/provider.yaml")
    document = registry.service(provider, provider.services["stock"])
    assert document is not None
    return document


def method(document: ServiceDocument, resource: str, name: str) -> Method:
    found = document.resource(resource)
    assert found is not None
    return found.methods[name]


def test_required_parameters_come_as_address_then_body_then_server(tmp_path: Path) -> None:
    document = stock(tmp_path)
    assert method(document, "items", "get").required == (
        "X-Trace", "item-id", "verbose", "edition", "region",
    )  # fmt: skip
    create = method(document, "items", "create")
    assert create.required == ("item_name", "tags", "host")
    assert create.server.url == "https://{host}/v2"


PATTERNED = (
    STOCK.replace(
        "- url: https://{region}.shop.example/v1\n"
        "  variables: {region: {default: eu}, edition: {default: basic}}",
        "- url: 'https://{region:^(?:eu|us)-[a-z]{2,5}-\\d$}.{edition}.shop.example/v1'\n"
        "  variables: {edition: {default: basic}}",
    )
    .replace("/items/{item-id}:", "'/items/{item-id:[A-Z]{1,3}(?:-\\d)?}':")
    .replace("~1items~1{item-id}/", "~1items~1{item-id:[A-Z]{1,3}(?:-\\d)?}/")
)


def test_a_pattern_in_an_address_is_no_part_of_a_name_and_bounds_the_value(tmp_path: Path) -> None:
    document = stock(tmp_path, PATTERNED)
    get = method(document, "items", "get")
    assert get.required == ("X-Trace", "item-id", "verbose", "edition", "region")
    assert get.server.url == "https://{region}.{edition}.shop.example/v1"
    given = {"X-Trace": "t", "verbose": 1, "edition": "basic"}

    def url(region: str, item: str) -> str:
        values = {**given, "region": region, "item-id": item}
        return build_request(get, document.schemas, values).url

    assert (
        url("eu-west-1", "AB-3")
        == "https://eu-west-1.basic.shop.example/v1/items/AB-3?verbose=true"
    )
    for region, item in (
        ("ap-west-1", "AB"), ("eu-west-1\n", "AB"), ("xeu-west-1", "AB"), ("eu-west-12", "AB"),
        ("eu-west-1", "ABCD"), ("eu-west-1", "ab"), ("eu-west-1", "AB/..")
    ):  # fmt: skip
        with pytest.raises(TidegateError) as caught:
            url(region, item)
        assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a|a)*b{1,9}", "several ways"),
        ("(", "cannot be read"),
        ("[[:alpha:]]+", "POSIX"),
        ("*", "cannot be read"),
    ],
)
def test_a_pattern_that_cannot_bound_a_value_is_found_by_the_check_and_sends_nothing(
    tmp_path: Path, pattern: str, problem: str
) -> None:
    text = STOCK.replace("https://{region}.shop", f"https://{{region:{pattern}}}.shop")
    document = stock(tmp_path, text.replace("url: https", "url: 'https").replace("/v1", "/v1'"))
    check = check_registry(RegistryFolder(tmp_path), lambda path: None)
    assert any(problem in each.problem for each in check.faults)
    values = {"region": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaac", "edition": "x"}
    with pytest.raises(TidegateError) as caught:
        build_request(method(document, "items", "list"), document.schemas, values)
    assert caught.value.code is Code.DOCUMENT_INVALID


def test_a_brace_of_an_address_that_does_not_end_is_a_fault_of_the_document(tmp_path: Path) -> None:
    document = stock(tmp_path, STOCK.replace("{region}.shop.example/v1", "'{region:[a-z.shop/v1'"))
    with pytest.raises(TidegateError) as caught:
        method(document, "items", "get")
    assert caught.value.code is Code.DOCUMENT_INVALID


def test_columns_of_a_body_have_a_prefix_unless_the_document_says_otherwise(tmp_path: Path) -> None:
    document = stock(tmp_path)
    names = [each.name for each in method(document, "items", "replace").parameters]
    assert [name for name in names if name.startswith("data__")] == [
        "data__itemName", "data__sizeMM", "data__parent", "data__tags", "data__colour",
        "data__weight",
    ]  # fmt: skip
    create = method(document, "items", "create")
    assert [each.name for each in create.parameters if each.place == "body"] == [
        "item_name", "size_mm", "parent", "tags", "colour", "weight",
    ]  # fmt: skip
    assert create.body is not None
    assert (create.body.media_type, create.body.base) == ("application/json", '{"kind": "x"}')


def test_the_query_in_a_path_is_sent_as_it_stands(tmp_path: Path) -> None:
    listing = method(stock(tmp_path), "items", "list")
    assert (listing.path, listing.fixed_query) == ("/items", (("kind", "stock"), ("__all", "")))


def test_settings_of_the_method_win_over_those_of_service_and_provider(tmp_path: Path) -> None:
    document = stock(tmp_path)
    listing = method(document, "items", "list").settings
    assert listing.pagination == Pagination("token", "query", "page_token", "body", "$.next")
    assert listing.request_translation == "drop_double_underscore_params"
    assert listing.pushdown == {"top": {"paramName": "limit", "maxValue": 200}}
    create = method(document, "items", "create").settings
    assert create.pagination == Pagination("token", "request", "", "header", "Link")
    assert create.body_names == "naive"


def test_columns_are_those_of_the_rows_and_not_of_their_envelope(tmp_path: Path) -> None:
    document = stock(tmp_path)
    for name in ("get", "list"):
        response = method(document, "items", name).response
        assert response.schema is not None
        columns = document.schemas.columns(response.schema, response.object_key)
        assert list(columns) == ["itemName", "sizeMM", "parent", "tags", "colour", "weight"]
        assert [document.schemas.kind(each) for each in columns.values()] == [
            "string", "integer", "object", "array", "string", "number",
        ]  # fmt: skip


def test_verbs_keep_the_documents_order_and_the_rest_is_for_exec(tmp_path: Path) -> None:
    document = stock(tmp_path)
    items, shops = document.resource("items"), document.resource("shops")
    assert items is not None and shops is not None
    assert items.verbs["select"] == ("get", "list")
    assert [items.verb_of(name) for name in items.methods] == [
        "select", "select", "insert", "replace",
    ]  # fmt: skip
    # Without `sqlVerbs` the usual names count.
    assert (shops.verb_of("list"), shops.verb_of("close")) == ("select", "exec")
    assert document.resource("nothing") is None


def test_a_view_is_the_one_for_sqlite_with_the_parameters_it_needs(tmp_path: Path) -> None:
    items = stock(tmp_path).resource("items")
    assert items is not None
    assert [(view.sql[:6], view.required) for view in items.views] == [
        ("SELECT", ("Identifier", "Region"))
    ]


def test_variables_of_a_path_are_parameters_however_they_are_declared(tmp_path: Path) -> None:
    document = stock(tmp_path)
    close = method(document, "shops", "close")
    assert (close.path, close.required[0]) == ("/shops/{shop-name}/close", "shop-name")
    assert method(document, "shops", "undeclared").required[0] == "thing"


def test_a_transformed_response_has_the_schema_of_what_is_read(tmp_path: Path) -> None:
    response = method(stock(tmp_path), "shops", "list").response
    assert response.transform is not None and response.schema is not None
    assert response.schema["required"] == ["itemName"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "$ref: '#/components/schemas/Base'}\n",
            "$ref: '#/components/schemas/None'}\n",
            "names nothing",
        ),
        (
            "$ref: '#/components/schemas/Base'}\n",
            "$ref: 'other.yaml#/Base'}\n",
            "leads out of the document",
        ),
        ("    Base: {type", "    Loop: {$ref: '#/components/schemas/Loop'}\n    Base: {type", None),
        ("algorithm: naive", "algorithm: clever", "an algorithm that is not known"),
        ("{key: Link, location: header}", "{key: Link, location: cookie}", "pagination"),
        ("objectKey: $.data.items", "objectKey: $..items", "is not understood"),
        ("nativeCasing: camel", "nativeCasing: shout", "the casing `shout`"),
        ("items/methods/create'", "items/methods/none'", "names no method of it"),
        ("        update: []", "        upsert: []", "the SQL verb `upsert`"),
        (
            "{$ref: '#/paths/~1items~1{item-id}/get'}",
            "{$ref: '#/components/schemas/Base'}",
            "no operation",
        ),
        (
            "      - {$ref: '#/components/parameters/Trace'}",
            "      - {in: query}",
            "without a name",
        ),
    ],
)
def test_a_document_that_cannot_be_used_says_why(
    tmp_path: Path, old: str, new: str, problem: str | None
) -> None:
    assert old in STOCK
    document = stock(tmp_path, STOCK.replace(old, new))
    if problem is None:
        assert document.resource("items") is not None
        return
    with pytest.raises(TidegateError, match=problem) as caught:
        document.resource("items")
    assert caught.value.code is Code.DOCUMENT_INVALID
    assert "stock.yaml" in caught.value.message


def test_a_reference_to_itself_ends(tmp_path: Path) -> None:
    document = stock(tmp_path)
    loop = {"$ref": "#/x"}
    document.schemas._tree = {"x": loop}  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(TidegateError, match="leads back to itself"):
        document.schemas.resolve(loop)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shop/v00.00.00000/services/stock.yaml", "../../etc/passwd"),
        ("shop/v00.00.00000/services/stock.yaml", "/etc/passwd"),
        ("{type: bearer", "{type: magic"),
        ("name: shop\n", "nom: shop\n"),
        ("providerServices:", "services:"),
    ],
)
def test_a_provider_that_cannot_be_used_is_refused(tmp_path: Path, old: str, new: str) -> None:
    registry = RegistryFolder(write_registry(tmp_path, provider=PROVIDER.replace(old, new)))
    with pytest.raises(TidegateError) as caught:
        registry.provider("shop/v00.00.00000/provider.yaml")
    assert caught.value.code is Code.DOCUMENT_INVALID


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = write_registry(tmp_path / "registry")
    os.mkfifo(folder / "src/shop/v00.00.00000/services/later.yaml")
    registry = RegistryFolder(folder)
    provider = registry.provider("shop/v00.00.00000/provider.yaml")
    with pytest.raises(TidegateError, match="it is no file"):
        registry.service(provider, provider.services["later"])


@pytest.mark.parametrize("document", ["", "- 1", "a: [", "\x00"])
def test_a_provider_that_cannot_be_read_hides_no_other(tmp_path: Path, document: str) -> None:
    folder = write_registry(tmp_path / "registry")
    broken = folder / "src/aaa/v01.00.00000/provider.yaml"
    broken.parent.mkdir(parents=True)
    broken.write_text(document)
    catalog = DocumentCatalog(RegistryFolder(folder))
    assert catalog.provider_versions() == [("aaa", "v01.00.00000"), ("shop", "v00.00.00000")]
    assert [each.name for each in catalog.providers()] == ["shop"]
    assert catalog.search("shop")
    with pytest.raises(TidegateError, match="no provider with the name `shp`"):
        catalog.provider("shp")
    with pytest.raises(TidegateError) as caught:
        catalog.provider("aaa")
    assert caught.value.code is Code.DOCUMENT_INVALID


def test_a_link_out_of_the_registry_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text(STOCK)
    folder = write_registry(tmp_path / "registry")
    (folder / "src/shop/v00.00.00000/services/later.yaml").symlink_to(outside)
    registry = RegistryFolder(folder)
    provider = registry.provider("shop/v00.00.00000/provider.yaml")
    with pytest.raises(TidegateError, match="leads out of the registry"):
        registry.service(provider, provider.services["later"])


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$.a[*].b", ("a", "*", "b")),
        ('$.items["*"].x', ("items", "*", "x")),
        ("a.b", ("a", "b")),
        ("/*/Result/member", ("*", "Result", "member")),
    ],
)
def test_paths_to_rows_are_steps(text: str, steps: tuple[str, ...]) -> None:
    assert parse_object_key(text, "a.yaml") == steps


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("VPCId", "vpc_id"), ("GroupARNs", "group_arns"), ("DBInstance", "db_instance"),
        ("already_Snake", "already_Snake"), ("nextToken", "next_token"), ("S3Bucket", "s3_bucket"),
        ("ID", "id"), ("ListMFADevices", "list_mfa_devices"), ("IPv6Address", "i_pv6_address"),
    ],
)  # fmt: skip
def test_names_in_snake_case_are_those_of_the_aws_library(name: str, snake: str) -> None:
    assert snake_case(name) == snake
