"""Whatever a document holds, using it gives a result or a coded error."""

from __future__ import annotations

import random
from typing import Any

import pytest

from products.cloud.support.cloud_registry import PROVIDER, STOCK
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.provider_document import read_provider
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.documents.yaml_reader import read_yaml
from tidegate.products.cloud.http.requests import build_request

PIECES: list[Any] = [
    None, True, 1, -1, "x", "{", [], {}, [{}], "\ud800", {"$ref": "#/nothing"},
    {"$ref": "#/components/schemas/Item"}, {"allOf": [{"$ref": "#/components/schemas/Item"}]},
]  # fmt: skip
VALUES: list[Any] = ["a", 1, 0.5, None, True, '{"a": 1}', "\x00", "\ud800", "../..", 2**70]


def damaged(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts replaced or left out."""
    if chance.random() < 0.03:
        return chance.choice(PIECES)
    if isinstance(value, dict):
        return {key: damaged(each, chance) for key, each in value.items() if chance.random() > 0.01}
    if isinstance(value, list):
        return [damaged(each, chance) for each in value if chance.random() > 0.02]
    return value


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_document_gives_coded_errors_alone(seed: int) -> None:
    chance = random.Random(seed)
    provider = read_provider(PROVIDER.encode(), "provider.yaml")
    whole = read_yaml(STOCK.encode(), "stock.yaml")
    built = 0
    for _ in range(250):
        try:
            document = ServiceDocument(damaged(whole, chance), "stock.yaml", provider)
        except TidegateError as error:
            assert error.code is Code.DOCUMENT_INVALID
            continue
        for name in document.resource_names:
            built += _use(document, name, chance)
    assert built > 30


def _use(document: ServiceDocument, name: str, chance: random.Random) -> int:
    """How many requests of a resource could be built."""
    built = 0
    try:
        resource = document.resource(name)
        assert resource is not None
        for method in resource.methods.values():
            schema = method.response.schema
            if schema is not None:
                document.schemas.columns(schema, method.response.object_key)
            values = {each.name: chance.choice(VALUES) for each in method.parameters}
            try:
                request = build_request(method, document.schemas, values)
            except TidegateError as error:
                assert error.code in (Code.ARGUMENT_INVALID, Code.DOCUMENT_INVALID)
            else:
                assert "\r" not in request.url and "\n" not in request.url
                built += 1
    except TidegateError as error:
        assert error.code is Code.DOCUMENT_INVALID
    return built
