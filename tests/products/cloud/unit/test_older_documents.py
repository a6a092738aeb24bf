"""Documents of older registries: resources in a document of their own, operations in others, verbs
by the names of methods and in upper case, services without documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.authoring.check import check_registry
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.registry_folder import RegistryFolder

PLACE = "old/v0.1.2"
SERVICES = f"{PLACE}/services"


def provider(**services: Any) -> dict[str, Any]:
    return {"id": "old", "name": "old", "providerServices": services}


def part(path: str, *verbs: str, **schemas: Any) -> dict[str, Any]:
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Row"}}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": path},
        "servers": [{"url": "https://old.example"}],
        "paths": {path: {verb: {"responses": {"200": answer}} for verb in verbs}},
        "components": {"schemas": {"Row": {"properties": {"a": {"type": "string"}}}, **schemas}},
    }


def method(link: str) -> dict[str, Any]:
    return {"operation": {"$ref": link}, "response": {"openAPIDocKey": "200"}}


RESOURCES: dict[str, Any] = {
    "resources": {
        "disks": {
            "name": "disks",
            "methods": {
                "list": method(f"{SERVICES}/disks.yaml#/paths/~1disks/GET"),
                "aggregatedList": method(f"{SERVICES}/all.yaml#/paths/~1all/get"),
                "insert": method(f"{SERVICES}/disks.yaml#/paths/~1disks/post"),
            },
        },
        "policies": {
            "name": "policies",
            "methods": {"look": method(f"{SERVICES}/all.yaml#/paths/~1all/get")},
            "sqlVerbs": {"select": [{"$ref": "#/resources/policies/methods/look"}]},
        },
    }
}
COMPUTE = {"resources": {"$ref": f"{PLACE}/resources/compute.yaml"}, "id": "compute:v1"}


def written(folder: Path, documents: dict[str, Any]) -> RegistryFolder:
    for path, tree in documents.items():
        target = folder / "src" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(tree))
    return RegistryFolder(folder)


def registry(folder: Path, **changed: Any) -> RegistryFolder:
    documents = {
        f"{PLACE}/provider.yaml": provider(compute=COMPUTE, later={"id": "later:v1"}),
        f"{PLACE}/resources/compute.yaml": RESOURCES,
        f"{SERVICES}/disks.yaml": part("/disks", "get", "post"),
        f"{SERVICES}/all.yaml": part("/all", "get"),
    }
    return written(folder, documents | {f"{SERVICES}/{n}.yaml": t for n, t in changed.items()})


def test_a_service_in_several_documents_becomes_one(tmp_path: Path) -> None:
    catalog = DocumentCatalog(registry(tmp_path))
    assert catalog.provider("old").version == "v0.1.2"
    disks = catalog.resource(("old", "compute", "disks"))
    assert disks.resource.verbs == {"select": ("list", "aggregatedList"), "insert": ("insert",)}
    listed = disks.resource.methods["list"]
    assert (listed.http_verb, listed.path, listed.server.url) == (
        "GET", "/disks", "https://old.example",
    )  # fmt: skip
    assert disks.resource.methods["aggregatedList"].path == "/all"
    policies = catalog.resource(("old", "compute", "policies")).resource
    assert policies.verbs == {"select": ("look",)}
    assert [each.path for each in catalog.search("disks")] == ["old.compute.disks"]


def test_the_check_counts_a_service_without_a_document_as_absent(tmp_path: Path) -> None:
    check = check_registry(registry(tmp_path), lambda path: None)
    assert (check.services, check.resources, check.methods, check.absent) == (1, 2, 4, 1)
    assert check.errors == 0


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("other/v1/services/x.yaml#/paths/~1all/get", "no document of its provider"),
        ("old/../other/x.yaml#/paths/~1all/get", "no document of its provider"),
        (f"{SERVICES}/gone.yaml#/paths/~1all/get", "which is not there"),
        ("https://evil.example/x.yaml#/paths/~1all/get", "no document of its provider"),
    ],
)
def test_an_operation_elsewhere_is_refused(tmp_path: Path, link: str, words: str) -> None:
    tree = {"resources": {"r": {"methods": {"list": method(link)}}}}
    documents = {
        f"{PLACE}/provider.yaml": provider(compute=COMPUTE),
        f"{PLACE}/resources/compute.yaml": tree,
    }
    with pytest.raises(TidegateError) as caught:
        DocumentCatalog(written(tmp_path, documents)).resource(("old", "compute", "r"))
    assert caught.value.code is Code.DOCUMENT_INVALID and words in caught.value.message


def test_documents_that_define_one_name_differently_are_refused(tmp_path: Path) -> None:
    other = part("/all", "get", Row={"properties": {"b": {"type": "string"}}})
    with pytest.raises(TidegateError) as caught:
        DocumentCatalog(registry(tmp_path, all=other)).resource(("old", "compute", "disks"))
    assert "`Row` differently" in caught.value.message
