"""Checks all documents of a registry: whether each could be used when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.model import Method, Provider, Resource, ServiceEntry
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.documents.url_templates import pattern_problem
from tidegate.products.cloud.http.graphql import problem_of_graphql
from tidegate.products.cloud.http.reply_formats import type_problem
from tidegate.products.cloud.http.transforms import problem_of
from tidegate.sql.finding import Refusal
from tidegate.sql.parse import parse


class DocumentFault(msgspec.Struct, frozen=True):
    """One thing that is wrong, and the document and resource that it is in."""

    document: str
    resource: str
    problem: str


class RegistryCheck(msgspec.Struct):
    """Counts of what a registry's documents declare.

    `services` are those whose document is there, `absent` those whose document is not. `errors` is
    the number of `faults`.
    """

    providers: int = 0
    services: int = 0
    resources: int = 0
    methods: int = 0
    absent: int = 0
    errors: int = 0
    faults: list[DocumentFault] = []

    def add(self, document: str, resource: str, problem: str) -> None:
        self.errors += 1
        self.faults.append(DocumentFault(document, resource, problem))


ReportDocument = Callable[[str], None]
"""Takes the path of the document that is read next."""


def check_registry(folder: RegistryFolder, report: ReportDocument) -> RegistryCheck:
    """Load every document of `folder` and compile all of it."""
    check = RegistryCheck()
    for path in folder.provider_paths():
        report(path)
        try:
            provider = folder.provider(path)
        except TidegateError as error:
            check.add(path, "", error.message)
            continue
        check.providers += 1
        for entry in provider.services.values():
            _check_service(folder, provider, entry, check, report)
    return check


def _check_service(
    folder: RegistryFolder,
    provider: Provider,
    entry: ServiceEntry,
    check: RegistryCheck,
    report: ReportDocument,
) -> None:
    try:
        document = folder.service(provider, entry)
    except TidegateError as error:
        check.add(entry.path, "", error.message)
        return
    if document is None:
        check.absent += 1
        return
    report(entry.path)
    check.services += 1
    for name in document.resource_names:
        try:
            resource = document.resource(name)
        except TidegateError as error:
            check.add(entry.path, name, error.message)
            continue
        if resource is not None:
            check.resources += 1
            check.methods += len(resource.methods)
            for problem in _problems_of(document, resource):
                check.add(entry.path, name, problem)


def _problems_of(document: ServiceDocument, resource: Resource) -> Iterator[str]:
    for name in resource.verbs.get("select", ()):
        response = resource.methods[name].response
        if response.transform is None and (problem := type_problem(response.media_type)):
            yield f"method {name}: {problem}"
    for method in resource.methods.values():
        for problem in _problems_of_method(document, method):
            yield f"method {method.name}: {problem}"
    for view in resource.views:
        if (problem := _problem_of_sql(view.sql)) is not None:
            yield f"view: {problem}"


def _problems_of_method(document: ServiceDocument, method: Method) -> Iterator[str]:
    response, body = method.response, method.body
    for each in method.parameters:
        if each.pattern and (problem := pattern_problem(each.pattern)) is not None:
            yield f"the pattern `{each.pattern[:60]}` of {each.name} cannot be used: {problem}"
    for transform in (response.transform, body.transform if body else None):
        if transform is not None and (problem := problem_of(transform)) is not None:
            yield problem
    if method.graphql is not None and (problem := problem_of_graphql(method.graphql)) is not None:
        yield problem
    for text in (body.base, body.default) if body else ():
        if text and not _is_json(text):
            yield f"the body `{text[:60]}` is no JSON"
    if response.schema is not None:
        try:
            document.schemas.columns(response.schema, response.object_key)
        except TidegateError as error:
            yield error.message


def _is_json(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return value is not None


def _problem_of_sql(sql: str) -> str | None:
    try:
        # A token has a character at least.
        parse(sql, "sqlite", len(sql))
    except Refusal as refusal:
        return f"its SQL is not understood: {refusal}"
    return None
