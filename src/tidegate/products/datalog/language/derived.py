"""What Datalevin makes of attributes, and shows where they are not named: tuples of them, entities
that are parts of others, and indexes of their words, vectors and documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.errors import TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo
from tidegate.model.statements import Effect
from tidegate.products.datalog.language.data_rules import check_attribute, hidden
from tidegate.products.datalog.language.functions import SEARCHES
from tidegate.products.datalog.language.reading import ReadSet
from tidegate.products.datalog.requests import TUPLE

_INDEXED = ("vec", "idoc")
"""Types of which all values are in an index."""


class Derived:
    """The derived attributes of a database, by its catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.tuples: dict[str, tuple[str, ...]] = {}
        self._components: set[str] = set()
        self._indexed: list[str] = []
        for column in _columns(catalog):
            name = column.name.removeprefix(":")
            notes = (column.extra or "").split(", ")
            if "component" in notes:
                self._components.add(name)
            if "full text" in notes or column.type in _INDEXED:
                self._indexed.append(name)
            for note in notes:
                if note.startswith(TUPLE):
                    parts = note.removeprefix(TUPLE).split()
                    self.tuples[name] = tuple([part.removeprefix(":") for part in parts])

    def check(self, reading: ReadSet, effect: Effect, rules: DataRules) -> None:
        """Raises: TidegateError POLICY_MASKED for what would show a hidden attribute by another."""
        for name in sorted(reading.followed & self._components):
            raise hidden(name, "shows the whole of another entity")
        for name in sorted(reading.attributes & self.tuples.keys()):
            part = self.hidden_part(name, rules)
            if part is not None:
                raise hidden(name, f"holds :{part[:80]}, which is hidden from this caller")
        if effect > Effect.READ:
            self._check_change(reading, rules)
        if reading.functions & SEARCHES:
            for name in self._indexed:
                if _is_hidden(name, rules):
                    raise hidden(
                        name,
                        "is in an index, and a search ranks what it finds by all that is there",
                    )

    def hidden_part(self, name: str, rules: DataRules) -> str | None:
        """The first part of a tuple that is hidden; None for another attribute."""
        parts = self.tuples.get(name, ())
        return next((part for part in parts if _is_hidden(part, rules)), None)

    def _check_change(self, reading: ReadSet, rules: DataRules) -> None:
        """A change of one part makes the tuple again, and the reply has it."""
        for name, parts in self.tuples.items():
            changed = reading.attributes & set(parts)
            if changed and (self.hidden_part(name, rules) or _is_hidden(name, rules)):
                raise hidden(
                    min(changed), f"is a part of :{name[:80]}, which holds what is hidden from"
                    " this caller: the reply to a change would show it"
                )  # fmt: skip


def masked_tuples(catalog: Catalog, rules: DataRules) -> Mapping[str, str]:
    """The tuples that hold a hidden attribute, with its name."""
    derived = Derived(catalog)
    found = {name: derived.hidden_part(name, rules) for name in derived.tuples}
    return {name: part for name, part in found.items() if part is not None}


def _is_hidden(name: str, rules: DataRules) -> bool:
    try:
        check_attribute(name, rules)
    except TidegateError:
        return True
    return False


def _columns(catalog: Catalog) -> Iterator[ColumnInfo]:
    for table in catalog.tables:
        yield from table.columns
