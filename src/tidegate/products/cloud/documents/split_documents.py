"""Puts together a service that several documents describe, as in older registries.

There a provider names a document of resources alone, `resources.$ref`, whose methods name
operations of others: `provider/v1/services/disks.yaml#/paths/~1disks/get`. These are parts of one
OpenAPI document. What comes of it has the form of today: one document with its resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.tree import mapping, require_mapping, sequence
from tidegate.products.cloud.documents.yaml_reader import refused

SECTION: Final = "x-stackQL-resources"
_LINK: Final = "#/resources/"
_MOST_DOCUMENTS: Final = 64
_DEFINING: Final = {"paths": 1, "components": 1}
"""What holds definitions, and how many levels below: of a path its verbs, of a kind its names."""
_BY_DOCUMENT: Final = ("servers", "x-stackQL-config")
"""What counts for all operations of a document."""


def whole_document(tree: Any, name: str, provider: str, read: Callable[[str], Any]) -> Any:
    """The document `name` with all that its operations refer to; itself if that is all in it.

    `provider` is the folder of the provider below the registry's `src`: no document of another is
    read. `read` gives the values of a document below `src`.
    Raises: TidegateError DOCUMENT_INVALID.
    """
    if not isinstance(tree, Mapping):
        return tree
    whole = mapping(tree)  # pyright: ignore[reportUnknownArgumentType]
    components = mapping(whole.get("components"))
    is_alone = SECTION not in components and "resources" in whole
    resources = mapping(whole.get("resources") if is_alone else components.get(SECTION))
    paths = dict.fromkeys(
        link.partition("#")[0] for link in _links(resources) if not link.startswith("#")
    )
    if not paths and not is_alone:
        return whole
    if len(paths) > _MOST_DOCUMENTS:
        raise refused(name, f"its operations are in more than {_MOST_DOCUMENTS} documents")
    joined: dict[str, Any] = {} if is_alone else dict(whole)
    for path in paths:
        parts = path.split("/")
        if parts[0] != provider or {"", ".", ".."} & set(parts) or "\\" in path:
            raise refused(name, f"an operation is in `{path[:120]}`, no document of its provider")
        if path == name:
            continue
        other = require_mapping(read(path), "the document", path)
        joined = _merged(joined, other, name, path)
    own = {each: _here(require_mapping(node, each, name)) for each, node in resources.items()}
    kept = {**mapping(joined.get("components")), SECTION: own}
    return {**joined, "components": kept}


def _links(resources: Mapping[str, Any]) -> Iterator[str]:
    """The references of all methods to their operations."""
    for resource in resources.values():
        for method in mapping(mapping(resource).get("methods")).values():
            link = mapping(mapping(method).get("operation")).get("$ref")
            if isinstance(link, str):
                yield link


def _here(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A resource whose references lead into its own document."""
    methods: dict[str, Any] = {}
    for name, node in mapping(resource.get("methods")).items():
        method = mapping(node)
        operation = mapping(method.get("operation"))
        link = operation.get("$ref")
        if isinstance(link, str) and "#" in link:
            here = {**operation, "$ref": link[link.index("#") :]}
            methods[name] = {**method, "operation": here}
        else:
            methods[name] = node
    changed = {**resource, "methods": methods}
    verbs = resource.get("sqlVerbs")
    if isinstance(verbs, Mapping):
        changed["sqlVerbs"] = {
            verb: [_listed_here(link) for link in sequence(links)]
            for verb, links in mapping(verbs).items()  # pyright: ignore[reportUnknownArgumentType]
        }
    return changed


def _listed_here(link: Any) -> Any:
    target = mapping(link).get("$ref")
    if isinstance(target, str) and target.startswith(_LINK):
        return {"$ref": f"#/components/{SECTION}/{target.removeprefix(_LINK)}"}
    return link


def _merged(
    first: Mapping[str, Any], second: Mapping[str, Any], name: str, path: str
) -> dict[str, Any]:
    """Both documents: their definitions, which must be equal where they have one name. What a
    document says of itself, such as its title, is the first one's."""
    merged = {**second, **first}
    for key in _BY_DOCUMENT:
        if first and key in second and first.get(key, second[key]) != second[key]:
            raise _different(name, path, key)
    for key, depth in _DEFINING.items():
        below = _joined(mapping(first.get(key)), mapping(second.get(key)), depth, name, path)
        if below:
            merged[key] = below
    return merged


def _joined(
    first: Mapping[str, Any], second: Mapping[str, Any], depth: int, name: str, path: str
) -> dict[str, Any]:
    """Both trees, whose definitions are `depth` levels below."""
    joined = {**second, **first}
    for key in first.keys() & second.keys():
        if depth:
            joined[key] = _joined(mapping(first[key]), mapping(second[key]), depth - 1, name, path)
        elif first[key] != second[key]:
            raise _different(name, path, key)
    return joined


def _different(name: str, path: str, key: str) -> TidegateError:
    return refused(name, f"it and {path} define `{str(key)[:80]}` differently")
