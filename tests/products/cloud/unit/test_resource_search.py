"""Resources are found by words; the lines of a document show their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from products.cloud.support.cloud_registry import STOCK, write_registry
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.resource_search import ResourceName, matching, names_in


def test_the_lines_of_a_document_tell_what_its_parser_finds(tmp_path: Path) -> None:
    folder = RegistryFolder(write_registry(tmp_path))
    provider = folder.provider("shop/v00.00.00000/provider.yaml")
    document = folder.service(provider, provider.services["stock"])
    assert document is not None
    assert names_in(STOCK.encode()) == list(document.resource_names) == ["items", "shops"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("openapi: 3.0.0\n", []),
        (
            "components:\n  x-stackQL-resources:\n    a:\n      id: b\n    'c-d': {}\n"
            "  x: 1\n    e: 2",
            ["a", "c-d"],
        ),
        ("x-stackQL-resources:\n\n# b:\n  a:\n    id: 1\nx:\n  b: 1", ["a"]),
        ("x-stackQL-resources:\nother: 1", []),
        ("x-stackQL-resources:\r\n  a:\r\n    b: 1\r\n  c:\r\n", ["a", "c"]),
        ("components: {x-stackQL-resources: {a: {}}}", None),
        ("x-stackQL-resources:\n  ? a\n  : b", None),
    ],
)  # fmt: skip
def test_what_lines_cannot_tell_is_left_to_the_parser(text: str, names: list[str] | None) -> None:
    assert names_in(text.encode()) == names


def test_every_word_must_be_there_and_whole_names_come_first(tmp_path: Path) -> None:
    found = [
        ResourceName("aws", "s3", "bucket_policies"),
        ResourceName("aws", "s3", "buckets"),
        ResourceName("google", "storage", "buckets"),
    ]
    assert [each.path for each in matching(found, "S3 bucket")] == [
        "aws.s3.buckets",
        "aws.s3.bucket_policies",
    ]
    assert matching(found, "buckets google")[0].path == "google.storage.buckets"
    assert matching(found, " ") == []
    catalog = DocumentCatalog(RegistryFolder(write_registry(tmp_path)))
    assert [each.path for each in catalog.search("item")] == ["shop.stock.items"]
