"""Prompts: four of the kind that the document's server has, and those in the operator's folder.

A prompt of the operator is a TOML file; its name is that of the file:

    description = "Compare two months"
    text = "Compare the sales of {first} with those of {second}."
    [[arguments]]
    name = "first"
    description = "A month, such as 2026-01"
    required = true
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from tidegate.config.errors import invalid
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.settings import PostgresSettings
from tidegate.protocol.model import Completion, PromptArgument, PromptMessage, PromptResult, text
from tidegate.surfaces.api import Completer, SurfacePrompt
from tidegate.surfaces.tool_context import ToolContext
from tidegate.typed_values import convert_value

MAX_FILE_BYTES = 65_536
MAX_FILES = 200
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_SLOT = re.compile(r"\{(\w+)\}")


class _Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    description: str = ""
    required: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a prompt's file holds. `{name}` in `text` is replaced by an argument."""

    text: str
    description: str = ""
    title: str | None = None
    arguments: tuple[_Argument, ...] = ()


def prompts(databases: Databases, folder: str | None) -> tuple[SurfacePrompt, ...]:
    """Every prompt, by name. Raises: TidegateError CONFIG_INVALID for an invalid file."""
    found = {name: _prompt(name, each, databases) for name, each in _BUILT_IN.items()}
    if folder is not None:
        for path in _files(folder):
            found[path.stem] = _prompt(path.stem, _read(path), databases)
    return tuple(found[name] for name in sorted(found))


def check_prompts(settings: PostgresSettings) -> None:
    """Raises: TidegateError CONFIG_INVALID for a folder or a file that cannot be used."""
    if settings.prompts is not None:
        for path in _files(settings.prompts):
            _read(path)


def _files(folder: str) -> Sequence[Path]:
    place = Path(folder)
    if not place.is_dir():
        raise invalid(f"`surface.postgres.prompts` names no folder: `{folder}`.")
    files = sorted(place.glob("*.toml"))
    if len(files) > MAX_FILES:
        raise invalid(f"The folder `{folder}` has more than {MAX_FILES} prompts.")
    return files


def _read(path: Path) -> _File:
    if not _NAME.fullmatch(path.stem):
        raise invalid(
            f"The name of the prompt file `{path}` cannot name a prompt.",
            hint="Use up to 64 letters, digits, `_` and `-`.",
        )
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise invalid(f"The prompt file `{path}` has more than {MAX_FILE_BYTES} bytes.")
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
        file = convert_value(whole, _File)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise invalid(f"The prompt file `{path}` cannot be read: {error}.") from None
    except msgspec.ValidationError as error:
        raise invalid(f"The prompt file `{path}` is wrong: {error}.") from None
    known = {argument.name for argument in file.arguments}
    for slot in _SLOT.findall(file.text):
        if slot not in known:
            raise invalid(
                f"The prompt file `{path}` uses `{{{slot}}}`, which is not one of its arguments.",
                hint="Add it under [[arguments]].",
            )
    return file


def _prompt(name: str, file: _File, databases: Databases) -> SurfacePrompt:
    completers: dict[str, Completer] = {
        argument.name: partial(_complete, databases, argument.name)
        for argument in file.arguments
        if argument.name in ("table", "table_name", "schema", "schema_name")
    }
    arguments = tuple(
        PromptArgument(each.name, each.description or None, each.required)
        for each in file.arguments
    )

    async def render(context: ToolContext, given: Mapping[str, str]) -> PromptResult:
        # In one pass, so that a value which looks like a slot stays as it is.
        filled = _SLOT.sub(lambda slot: given.get(slot[1], ""), file.text)
        return PromptResult([PromptMessage("user", text(filled))], file.description or None)

    return SurfacePrompt(
        name,
        render,
        title=file.title,
        description=file.description or None,
        arguments=arguments,
        completers=completers,
    )


async def _complete(
    databases: Databases,
    kind: str,
    context: ToolContext,
    typed: str,
    chosen: Mapping[str, str],
) -> Completion:
    """Names of tables or schemas that begin with what was typed, as the caller sees them."""
    source = await databases.name_of(context, None)
    catalog = await databases.handle(context, source, Browse("catalog"), Catalog, quiet=True)
    if kind.startswith("schema"):
        names = {table.schema for table in catalog.tables}
    else:
        schema = chosen.get("schema_name") or chosen.get("schema")
        names = {table.name for table in catalog.tables if schema in (None, table.schema)}
    fitting = sorted(name for name in names if name.lower().startswith(typed.lower()))
    return Completion(fitting[:100], len(fitting), len(fitting) > 100)


_BUILT_IN = {
    "explore-database": _File(
        description="Find out what a database holds",
        text=(
            "Find out what this database holds. Call get_schema_info first; if it sums the schema"
            " up, go on with one schema or table at a time. Look at a few rows of the main tables"
            " with query_database and a small limit. Then say in a few paragraphs what the data is"
            " about, how the tables belong together, and which questions it can answer."
        ),
    ),
    "setup-semantic-search": _File(
        description="Find the right table for a search by meaning, and search it",
        text=(
            "Find what fits this text best: {query_text}\n\nCall get_schema_info with"
            " vector_tables_only=true and choose the table whose texts fit the question. Search it"
            " with similarity_search. Start with a small max_output_tokens, and search again with"
            " other words or another table if the results do not answer the question. Quote the"
            " rows that you rely on."
        ),
        arguments=(_Argument("query_text", "What to look for", required=True),),
    ),
    "diagnose-query-issue": _File(
        description="Find out why a query fails, is slow, or returns the wrong rows",
        text=(
            "Something is wrong with a query: {issue_description}\n\nRead pg://system_info, then"
            " get_schema_info for the tables that are involved. Check names and types, then run"
            " EXPLAIN through query_database. For slow queries compare the estimated rows with a"
            " count. Say what is wrong, how you know, and what to change."
        ),
        arguments=(_Argument("issue_description", "What is wrong, and with which query"),),
    ),
    "design-schema": _File(
        description="Design tables for a purpose",
        text=(
            "Design a PostgreSQL schema for these requirements: {requirements}\n\nUse case:"
            " {use_case}\nWith auditing, partitions and search: {full_featured}\n\nLook at"
            " get_schema_info first, and follow the names that are there. Give every table a"
            " primary key, declare foreign keys and NOT NULL where they hold, and choose types for"
            " what the data is. Write the statements for a person to run, and say what each index"
            " is for. Run nothing that changes the database."
        ),
        arguments=(
            _Argument("requirements", "What is to be kept, and what is asked of it", required=True),
            _Argument("use_case", "Such as orders, documents, or measurements"),
            _Argument("full_featured", "yes for more than the tables themselves"),
        ),
    ),
}
