"""Documents of providers, each served by Prism, or where Prism cannot, by a server of our own: what
is asked by SQL is what a plain client gets.

The documents of the tests always; with `TIDEGATE_CLOUD_REGISTRY`, the name of a registry's folder,
those of eleven providers there as well, as they are (`./dev providers FOLDER`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from products.cloud.contract.conftest import Ask, copy_documents
from products.cloud.contract.document_calls import Call, calls, plain_request, rows_of
from products.cloud.support.cloud_registry import write_registry
from products.cloud.support.document_server import DocumentServer, document_server
from products.cloud.support.prism import Prism, running_prism
from support.cloud_api import write_farm
from support.cloud_surface import write_desk
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.products.cloud.documents.names import snake_case
from tidegate.products.cloud.documents.registry_folder import RegistryFolder

FOLDER = os.environ.get("TIDEGATE_CLOUD_REGISTRY")
LOGIN = "WORD_FOR_PRISM"
LARGEST = 200_000
"""Bytes of a document that is taken where not all are asked for."""


class Target(NamedTuple):
    """A provider, how many of its methods must be answered at least, and whether its documents
    define the login that they require."""

    provider: str
    least: int
    checks_login: bool = True
    services: tuple[str, ...] = ()


OWN = [Target("containers", 1), Target("etcd", 2), Target("prom", 5), Target("farm", 6),
       Target("desk", 2)]  # fmt: skip
THEIRS = [
    Target("homebrew", 1, services=("formula",)),
    Target("openai", 10, services=("models", "files", "batches", "skills")),
    Target("linode", 5, services=("domains",)),
    Target("github", 12, services=("licenses", "gitignore", "meta", "codes_of_conduct", "oidc")),
    Target("digitalocean", 15, services=("account", "billing", "projects", "vpcs")),
    Target("okta", 8, services=("roles", "sessions", "api_tokens", "directories", "templates")),
    Target("godaddy", 10, services=("agreements", "domains", "orders", "countries")),
    Target("netlify", 5, False, services=("user", "site", "build", "dns_zone", "audit_log")),
    Target("google", 10, services=("dns", "pubsub")),
    Target("cloudflare", 10, False, services=("queues", "durable_objects", "accounts")),
]

WITH_QUERIES = [Target("azure", 12, services=("dns", "key_vault_secrets"))]


@pytest.fixture(scope="module")
def prism() -> Iterator[Prism]:
    with running_prism() as prism:
        yield prism


@pytest.fixture(scope="module")
def documents() -> Iterator[DocumentServer]:
    with document_server() as server:
        yield server


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_registry(write_desk(write_farm(copy_documents(tmp_path_factory))))


async def test_our_documents_are_answered(
    prism: Prism, own_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(LOGIN, "a word")
    for target in OWN:
        await compare(prism, own_folder, target)


async def test_paths_with_queries_are_answered(
    documents: DocumentServer, own_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(LOGIN, "a word")
    for target in (*OWN, Target("shop", 2)):
        await compare(documents, own_folder, target)
    if FOLDER:
        for target in WITH_QUERIES:
            await compare(documents, Path(FOLDER), target)
    assert documents.misses == []


@pytest.mark.parametrize("target", THEIRS, ids=lambda each: each.provider)
async def test_a_providers_own_documents_are_answered(
    prism: Prism, monkeypatch: pytest.MonkeyPatch, target: Target
):
    if not FOLDER:
        pytest.skip("TIDEGATE_CLOUD_REGISTRY names no folder with documents of providers")
    monkeypatch.setenv(LOGIN, "a word")
    if os.environ.get("TIDEGATE_CLOUD_SERVICES") == "all":
        target = target._replace(services=())
    await compare(prism, Path(FOLDER), target)


async def compare(server: Prism | DocumentServer, folder: Path, target: Target) -> None:
    """Ask each method by SQL and by a plain client; both get the same rows or the same status."""
    registry = RegistryFolder(folder)
    paths = (registry.provider(path) for path in registry.provider_paths())
    provider = next(each for each in paths if each.name == target.provider)
    answered = 0
    for name, entry in provider.services.items():
        document = registry.service(provider, entry)
        if document is None or (target.services and name not in target.services):
            continue
        url = server.serve(folder / "src" / entry.path, checks_login=target.checks_login)
        for call in calls(provider, name, document):
            ask = source(folder, target.provider, {call.server: url})
            answered += await compare_call(ask, url, call)
    assert answered >= target.least, (target.provider, answered)


def source(folder: Path, provider: str, endpoints: dict[str, str]) -> Ask:
    login = {"auth": {"type": "bearer", "credentialsenvvar": LOGIN}}
    settings = {"endpoints": endpoints, "providers": {provider: login}}
    url = f"cloud://{folder}"
    # The example of a page names the same next page for ever.
    options = (("settings", json.dumps(settings)), ("page_limit", "1"))
    return Ask(Source("c", "c", url, *engine_of(url), options=options))


async def compare_call(ask: Ask, url: str, call: Call) -> bool:
    """Whether the method was answered with rows that are in the document's place."""
    path, headers = plain_request(call)
    method = call.method
    plain = httpx.request(
        method.http_verb,
        url + path,
        headers={
            **headers,
            "Authorization": "Bearer a word",
            "Accept": f"{method.response.media_type or 'application/json'}, */*;q=0.1",
        },
        json={} if method.body is not None and method.body.is_required else None,
        timeout=30,
    )
    try:
        rows = await ask(call.statement)
    except TidegateError as error:
        if method.response.transform is not None and error.code is Code.PROVIDER_REPLY:
            return False  # Prism answers in the form that the document gives to replies
        assert plain.status_code != 200, (call.statement, error)
        assert error.details["http_status"] == plain.status_code, (call.statement, error)
        assert error.code in (Code.PROVIDER_FAILED, Code.PROVIDER_REFUSED, Code.CREDENTIAL_REFUSED)
        return False
    if plain.status_code == 404:
        assert rows == []
        return False
    assert plain.status_code in (200, 204), (call.statement, plain.text[:200])
    body = plain.json() if plain.content else None
    if method.response.transform is not None:
        assert rows or not body, call.statement
        return bool(rows)
    expected = [] if body is None else rows_of(body, method.response.object_key)
    assert len(rows) == len(expected), (call.statement, plain.text[:200])
    names = [each.name for each in ask.cursor.columns]
    assert len(set(names)) == len(names)
    shown = [
        compare_row(call, dict(zip(names, row, strict=True)), wanted)
        for row, wanted in zip(rows, expected, strict=True)
    ]
    return any(shown)


def compare_row(call: Call, row: dict[str, Any], wanted: Any) -> bool:
    """Whether the document has a column for something of the row. What it has is the same."""
    if not isinstance(wanted, dict):
        cells = [*row.values(), *(json.loads(x) for x in row.values() if str(x)[:1] == "[")]
        assert wanted in cells, (call.statement, wanted)
        return True
    known = {key.lower(): key for key in row}
    shown = 0
    for name, value in wanted.items():
        column = known.get(name.lower()) or known.get(snake_case(name).lower())
        if column is None:
            continue  # the document's schema has no such column
        assert in_json(row[column], value) == value, (call.statement, column)
        shown += 1
    return shown > 0


def in_json(cell: Any, like: Any) -> Any:
    """A cell as the value of JSON that it stands for."""
    if isinstance(like, bool) and cell in (0, 1):
        return bool(cell)
    if isinstance(like, (dict, list)) and isinstance(cell, str):
        return json.loads(cell)
    return cell


async def test_what_prism_refuses_is_an_error_with_its_status(
    prism: Prism, own_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(LOGIN, "a word")
    documents = own_folder / "src" / "farm" / "v00.00.00000" / "services"
    ask = source(
        own_folder, "farm", {"https://api.farm.example": prism.serve(documents / "live.yaml")}
    )
    error = await ask.refusal("SELECT * FROM farm.live.animals WHERE id = 'no number'")
    assert (error.code, error.details["http_status"]) == (Code.PROVIDER_FAILED, 422)
    assert "farm.live.animals.get" in error.message
    monkeypatch.delenv(LOGIN)
    error = await ask.refusal("SELECT * FROM farm.live.animals")
    assert LOGIN in f"{error.message} {error.hint}"
