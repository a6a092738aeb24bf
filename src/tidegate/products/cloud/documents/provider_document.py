"""Reads `provider.yaml`: the services of a provider, and how it is logged in to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tidegate.products.cloud.documents.model import Provider, ServiceEntry
from tidegate.products.cloud.documents.settings import read_settings
from tidegate.products.cloud.documents.tree import require_mapping
from tidegate.products.cloud.documents.yaml_reader import read_yaml, refused

# The settings can name another login where this product has none of a document's type.
AUTH_TYPES: Final = (
    "api_key", "aws_assume_role", "aws_signing_v4", "azure_default", "basic", "bearer", "custom",
    "interactive", "none", "null_auth", "oauth2", "oci_signing_v1", "service_account",
)  # fmt: skip


def read_provider(
    content: bytes, document: str, read: Callable[[bytes, str], Any] = read_yaml
) -> Provider:
    """The provider in a file named `document`, whose values `read` gives.

    Raises: TidegateError DOCUMENT_INVALID.
    """
    tree = require_mapping(read(content, document), "the document", document)
    config = require_mapping(tree.get("config") or {}, "`config`", document)
    auth = require_mapping(config.get("auth") or {}, "`config.auth`", document)
    if auth and auth.get("type") not in AUTH_TYPES:
        raise refused(document, f"the login `{str(auth.get('type'))[:60]}` is not known")
    services = require_mapping(tree.get("providerServices"), "`providerServices`", document)
    return Provider(
        name=_text(tree, "name", document),
        version=str(tree.get("version") or _folder_version(document)),
        title=str(tree.get("title") or ""),
        description=str(tree.get("description") or ""),
        services={name: _service(name, entry, document) for name, entry in services.items()},
        auth=auth,
        settings=read_settings(config, document),
        renames_columns=config.get("snake_case_aliases") is True,
    )


def _service(name: str, value: Any, document: str) -> ServiceEntry:
    entry = require_mapping(value, f"the service `{name[:80]}`", document)
    key = "resources" if "resources" in entry else "service"
    path: Any = ""
    if key in entry:  # an older registry lists services that it has no document of
        link = require_mapping(entry[key], f"`{key}` of `{name[:80]}`", document)
        path = link.get("$ref")
        if not isinstance(path, str) or not _is_inside(path):
            raise refused(document, f"the service `{name[:80]}` names no file of the registry")
    return ServiceEntry(
        id=str(entry.get("id") or name),
        name=str(entry.get("name") or name),
        title=str(entry.get("title") or ""),
        description=str(entry.get("description") or ""),
        path=path,
        is_preferred=entry.get("preferred") is True,
        lists_resources=key == "resources",
    )


def _folder_version(document: str) -> str:
    """The version by the folder, `provider/version/provider.yaml`, of a document without one."""
    parts = document.split("/")
    return parts[-2] if len(parts) > 1 else ""


def _is_inside(path: str) -> bool:
    """Whether a path stays below the directory that it is relative to."""
    parts = path.split("/")
    return bool(path) and not {"", ".", ".."} & set(parts) and "\\" not in path and "\0" not in path


def _text(tree: Mapping[str, Any], key: str, document: str) -> str:
    value = tree.get(key)
    if not isinstance(value, str) or not value:
        raise refused(document, f"`{key}` is missing")
    return value
