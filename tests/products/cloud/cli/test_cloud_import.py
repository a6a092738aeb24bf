"""`tidegate cloud import` makes a provider from a plain OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.cli.main import main
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.authoring.openapi_import import import_openapi
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.yaml_reader import read_yaml
from tidegate.products.cloud.http.requests import build_request, find_method

OPENAPI = """
openapi: 3.0.3
info: {title: A pet shop, version: '1'}
servers: [{url: 'https://pets.example.com/api'}]
security: [{key: []}]
paths:
  /v1/pets:
    get:
      operationId: listPets
      parameters: [{name: kind, in: query, schema: {type: string}}]
      responses:
        '200':
          content:
            application/json:
              schema:
                type: object
                properties:
                  total: {type: integer}
                  data: {type: array, items: {$ref: '#/components/schemas/Pet'}}
    post:
      operationId: createPet
      requestBody:
        content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}
      responses: {'201': {description: made}}
  /v1/pets/{petId}:
    parameters: [{name: petId, in: path, required: true, schema: {type: string}}]
    servers: [{url: 'https://elsewhere.example.com'}]
    get:
      operationId: getPet
      responses:
        2XX: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
    head: {operationId: hasPet, responses: {default: {description: ok}}}
    delete: {responses: {'204': {description: gone}}}
  /v1/pets/{petId}/toys:
    get:
      parameters:
      - {name: petId, in: path, required: true, schema: {type: string}}
      - name: filter
        in: query
        content: {application/json: {schema: {type: object}}}
      responses: {'200': {description: ok}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        id: {type: integer}
        name: {type: string}
        parent: {$ref: '#/components/schemas/Pet'}
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    def run(text: str, *words: str) -> int:
        path = tmp_path / "openapi.yaml"
        path.write_text(text)
        return main([
            "cloud", "import", str(path), "--folder", str(tmp_path / "docs"),
            "--state", str(tmp_path / "state"), *words,
        ])  # fmt: skip

    return run


def test_a_document_becomes_a_provider_that_reads_with_select_alone(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(OPENAPI, "--provider", "pets") == 0
    said = capsys.readouterr()
    assert "resources 2  methods 6" in said.out
    assert "its login reads PETS_API_KEY" in said.err
    folder = RegistryFolder(tmp_path / "docs")
    (path,) = folder.provider_paths()
    provider = folder.provider(path)
    assert provider.auth["name"] == "X-Key"
    document = folder.service(provider, provider.services["api"])
    assert document is not None
    pets = document.resource("pets")
    assert pets is not None
    assert pets.verbs["select"] == ("get_pet", "has_pet", "list_pets")
    assert {verb for verb, names in pets.verbs.items() if names} == {"select"}
    assert pets.verb_of("create_pet") == pets.verb_of("delete_by_pet_id") == "exec"
    assert pets.methods["list_pets"].response.object_key == ("data",)
    method = find_method(pets, "select", ["petId"])
    assert method is not None
    request = build_request(method, document.schemas, {"petId": "a/b"})
    assert request.url == "https://pets.example.com/api/v1/pets/a%2Fb"
    assert main(["cloud", "check", str(tmp_path / "docs")]) == 0


def test_patterns_in_addresses_bound_values_of_what_is_imported(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OPENAPI.replace(
        "url: 'https://pets.example.com/api'",
        r"url: 'https://{region:^[a-z]{2}-\d$}.example.com/api'",
    )
    owners = "  '/owners/{id:[[:digit:]]+}': {get: {responses: {'200': {description: ok}}}}\n"
    text = text.replace("components:", f"{owners}components:", 1)
    text = text.replace("/v1/pets/{petId}:", "'/v1/pets/{petId:[0-9]{1,3}}':")
    assert run(text, "--provider", "pets") == 0
    assert "the pattern of id: it has a class of POSIX" in capsys.readouterr().err
    folder = RegistryFolder(tmp_path / "docs")
    (path,) = folder.provider_paths()
    provider = folder.provider(path)
    document = folder.service(provider, provider.services["api"])
    assert document is not None
    pets = document.resource("pets")
    assert pets is not None and pets.methods["get_pet"].required == ("petId", "region")
    request = build_request(
        pets.methods["get_pet"], document.schemas, {"petId": "12", "region": "eu-1"}
    )
    assert request.url == "https://eu-1.example.com/api/v1/pets/12"


def test_a_provider_that_is_there_is_replaced_only_when_that_is_said(
    run: Callable[..., int], tmp_path: Path
) -> None:
    assert run(OPENAPI, "--provider", "pets") == 0
    path = tmp_path / "docs" / "src" / "pets" / "v00.00.00000" / "provider.yaml"
    before = path.read_bytes()
    changed = OPENAPI.replace("A pet shop", "Another")
    assert run(changed, "--provider", "pets") == 2
    assert path.read_bytes() == before
    assert run(changed, "--provider", "pets", "--replace") == 0
    assert path.read_bytes() != before


@pytest.mark.parametrize(
    ("old", "new", "words", "problem"),
    [
        ("openapi: 3.0.3", "swagger: '2.0'", (), "Swagger 2.0"),
        ("url: 'https://pets.example.com/api'", "url: /api", (), "--server"),
        ("#/components/schemas/Pet'}}}}\n    head", "other.yaml#/Pet'}}}}\n    head", (),
         "another document"),
        ("", "", ("--server", "ftp://x"), "not the address"),
        ("", "", ("--service", "A-b"), "cannot be the name"),
        ("paths:", "paths: [", (), "line"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_said_and_nothing_is_written(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    old: str, new: str, words: tuple[str, ...], problem: str,
) -> None:  # fmt: skip
    assert old in OPENAPI
    assert run(OPENAPI.replace(old, new, 1), "--provider", "pets", *words) != 0
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize(
    ("scheme", "login"),
    [
        ({"type": "http", "scheme": "Bearer"}, {"type": "bearer", "credentialsenvvar": "P_TOKEN"}),
        ({"type": "http", "scheme": "basic"}, {"type": "basic", "username_var": "P_USERNAME"}),
        ({"type": "apiKey", "in": "query", "name": "k"}, {"type": "custom", "location": "query"}),
        ({"type": "apiKey", "in": "cookie", "name": "k"}, {"type": "none"}),
        (
            {"type": "oauth2", "flows": {"clientCredentials": {
                "tokenUrl": "https://a.example/t", "scopes": {"r": ""}}}},
            {"type": "oauth2", "token_url": "https://a.example/t", "scopes": ["r"]},
        ),
    ],
)  # fmt: skip
def test_each_security_scheme_becomes_a_login(
    scheme: dict[str, Any], login: dict[str, Any]
) -> None:
    tree = read_yaml(OPENAPI.encode(), "d")
    tree["components"]["securitySchemes"]["key"] = scheme
    auth = import_openapi(tree, "d", "p", "api").provider["config"]["auth"]
    assert login.items() <= auth.items()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["get", "in", "name", "schema", "content", "200", "$ref", "type", "/{a}/b",
                         "parameters", "responses", "items", "properties", "allOf", "x"]),
        inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(JSON, JSON)
def test_whatever_a_document_holds_the_answer_is_a_provider_or_a_coded_error(
    paths: Any, schemas: Any
) -> None:
    tree = read_yaml(OPENAPI.encode(), "d")
    tree["paths"]["/{a}/b"] = paths
    tree["paths"]["/c"] = {"get": paths}
    tree["components"]["schemas"]["Pet"] = schemas
    try:
        made = import_openapi(tree, "d", "p", "api")
    except TidegateError as error:
        assert error.code in (Code.DOCUMENT_INVALID, Code.ARGUMENT_INVALID)
    else:
        assert json.dumps(made.service)
