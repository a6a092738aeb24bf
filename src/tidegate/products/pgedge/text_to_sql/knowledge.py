"""Reads the knowledge file: what people know of a source and its catalog does not say.

A YAML file, named in `language.sources.NAME.knowledge`. All of it may be shown to a model where
`share` is `comments` or `values`; with `names`, synonyms and joins only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import convert_value

MAX_BYTES = 1_048_576


class KnownColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a column; `unit` as in `cents`."""

    description: str = ""
    synonyms: tuple[str, ...] = ()
    unit: str = ""


class KnownTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a table. `default_filter` is the condition, in SQL, that rows must meet
    unless a question says otherwise."""

    description: str = ""
    synonyms: tuple[str, ...] = ()
    default_filter: str = ""
    columns: dict[str, KnownColumn] = {}

    def column(self, name: str) -> KnownColumn | None:
        """What is known of a column: by its very name, else in any case of letters, since a
        database may fold names that a person has written otherwise."""
        if name in self.columns:
            return self.columns[name]
        folded = name.casefold()
        found = (known for key, known in self.columns.items() if key.casefold() == folded)
        return next(found, None)


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a term of the business means, in words or SQL."""

    term: str
    means: str


class KnownJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"left": "from"}):
    """A join that no foreign key declares: `from` and `to` are `table.column`."""

    left: str
    to: str


class Knowledge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. Tables are `table` or `schema.table`; `instructions` are sentences for the
    model."""

    tables: dict[str, KnownTable] = {}
    definitions: tuple[Definition, ...] = ()
    joins: tuple[KnownJoin, ...] = ()
    instructions: tuple[str, ...] = ()

    def table(self, schema: str, name: str) -> KnownTable | None:
        """What is known of a table, by `schema.table` before `table`, in any case of letters."""
        wanted = (f"{schema}.{name}".casefold(), name.casefold())
        found = {key.casefold(): value for key, value in self.tables.items()}
        return next((found[key] for key in wanted if key in found), None)


def read_knowledge(path: str) -> Knowledge:
    """The knowledge in a file. Raises: TidegateError CONFIG_INVALID that says what is wrong."""
    try:
        content = Path(path).read_bytes()[: MAX_BYTES + 1]
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise _unusable(path, "is larger than 1 MiB")
    import yaml

    try:
        parsed: Any = yaml.safe_load(content)
        return convert_value(parsed or {}, Knowledge)
    except (yaml.YAMLError, msgspec.ValidationError, ValueError) as error:
        raise _unusable(path, f"is not valid: {' '.join(str(error).split())[:300]}") from None


def _unusable(path: str, reason: str) -> TidegateError:
    return TidegateError(
        Code.CONFIG_INVALID,
        f"The knowledge file `{path}` {reason}.",
        hint="Correct the file; docs/howto/ask-questions.md shows its form.",
        details={"path": path},
    )
