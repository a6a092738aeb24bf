"""Imports a file into a Datalog source: shows the schema, asks, and sends the records through the
gate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.progress import progress
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.requests import Browse, Call, Request
from tidegate.model.results import Limits
from tidegate.model.schema import Catalog
from tidegate.products.datalog.language.import_records import (
    MOST_BYTES,
    Attribute,
    Fact,
    Format,
    as_vectors,
    infer,
    records_of,
    schema_of,
    vector_options,
)
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

BATCH = 1_000
"""Entities of one transaction: each is whole or absent."""

_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".edn": "edn",
}

_DATABASE = DatalogTarget("database")


async def import_file(app: App, arguments: argparse.Namespace) -> int:
    """Import the file. Raises: TidegateError; what was sent before is kept then, and said."""
    path = Path(arguments.file)
    format: Format | None = arguments.format or _FORMATS.get(path.suffix.lower())
    if format is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The ending of {path.name} says no format.",
            hint="Name it with --format jsonl, csv or edn.",
        )
    namespace: str = path.stem if arguments.namespace is None else arguments.namespace
    records = records_of(_text_of(path), format, namespace)
    key = None if arguments.key is None else _attribute(arguments.key)
    vectors = {name: as_vectors(records, name) for name in map(_attribute, arguments.vector)}
    attributes = infer(records, key, [*map(_attribute, arguments.fulltext)], vectors)
    _show(attributes)
    if not arguments.schema_only:
        what = f"add {len(records)} entities to the source {arguments.source}"
        require_consent(app, "import", what, arguments)
        done = await send_records(app, arguments.source, attributes, records)
        if arguments.json:
            show_json({"entities": len(records), "facts": done})
        else:
            print_status(f"imported {len(records)} entities ({done} facts)")
    return 0


def _attribute(given: str) -> str:
    return f":{given.removeprefix(':')}"


async def send_records(
    app: App, source: str, attributes: list[Attribute], records: list[Fact]
) -> int:
    """Add the records to a source, with the attributes that it does not have yet; returns how many
    facts they made. Raises: TidegateError; what was sent before is kept then, and said."""
    known = await _known_attributes(app, source)
    schema = {
        name: properties for name, properties in schema_of(attributes).items() if name not in known
    }
    new = [each for each in attributes if each.name in schema]
    options = {} if known else vector_options(new)
    if known and any(each.dimensions for each in new):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The source {source} holds data already, and an attribute of vectors is made with the"
            " database.",
            hint="Import the vectors first, into a new directory.",
        )
    opening = _request(
        DatalogOperation.OPEN_DATABASE,
        {"schema": schema},
        DatalogTarget("database", options),
        create=True,
    )
    await _ask(app, source, opening)
    facts = done = 0
    with progress(f"Importing into {source}", max(1, len(records))) as advance:
        for start in range(0, len(records), BATCH):
            batch = records[start : start + BATCH]
            request = _request(DatalogOperation.TRANSACT, {"txData": batch})
            try:
                payload = await _ask(app, source, request)
            except TidegateError as error:
                error.hint = f"{done} of {len(records)} entities are in the database. {error.hint}"
                raise
            facts += len(msgspec.json.decode(payload.json)["tx-data"])
            done += len(batch)
            advance(f"{done} entities", len(batch))
    return facts


async def _known_attributes(app: App, source: str) -> set[str]:
    """The attributes that the database has."""
    catalog: Catalog = await _ask(app, source, Browse(aspect="catalog"))
    return {column.name for table in catalog.tables for column in table.columns}


def _request(
    operation: DatalogOperation,
    arguments: dict[str, Any],
    target: DatalogTarget = _DATABASE,
    *,
    create: bool = False,
) -> DatalogRequest:
    count = len(arguments.get("txData", ()))
    text = f"import {count} entities" if count else "import: make the attributes"
    limits = Limits(timeout_s=300.0, max_bytes=64 * 1024 * 1024)
    return DatalogRequest(
        operation=operation,
        target=target,
        arguments=arguments,
        create=create,
        text=text,
        limits=limits,
    )


async def _ask(app: App, source: str, request: Request) -> Any:
    call = Call(cli(allow_writes=True), "cli", "datalog import", request, source)
    return (await app.gateway.handle(call)).payload


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"{path.name} has more than {MOST_BYTES // 1_048_576} MiB.",
                hint="Split it.",
            )
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"{path.name} is no UTF-8.") from error
    except OSError as error:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"{path.name} cannot be read: {error.strerror}."
        ) from error


def _show(attributes: list[Attribute]) -> None:
    rows = [
        (
            each.name,
            each.type or "any",
            "many" if each.many else "one",
            "identity" if each.unique else "",
            "words" if each.fulltext else f"{each.dimensions} numbers" if each.dimensions else "",
            each.entities,
        )
        for each in attributes
    ]
    show_table(("attribute", "type", "values", "unique", "index", "entities"), rows)
