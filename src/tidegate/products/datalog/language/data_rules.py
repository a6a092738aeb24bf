"""Holds the rules that hide data against what an operation reads or writes.

A table is the namespace of an attribute (`person` of `:person/name`), or the whole name of one
without, and a column is the attribute. Values of a hidden attribute are not masked in a result: the
operation that could show one is refused, and so is one that may read what it does not name.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.errors import TidegateError, masking_refused, table_refused
from tidegate.model.data_rules import DataRules, Show
from tidegate.products.datalog.language.reading import ReadSet

_HINT = "Name the attributes that you need, without those that are hidden from you."


def check_reading(reading: ReadSet, rules: DataRules) -> None:
    """Raises: TidegateError POLICY_MASKED or POLICY_TABLE for what `rules` could hide."""
    if reading.everything:
        raise masking_refused(
            "Some of this source is hidden from this caller, and the request could read"
            " attributes that it does not name",
            "source.masking",
            _HINT,
        )
    for name in sorted(reading.attributes):
        check_attribute(name, rules)


def check_attribute(name: str, rules: DataRules) -> None:
    """Raises: TidegateError POLICY_MASKED or POLICY_TABLE if `rules` hide the attribute, or some of
    the entities that have it."""
    table = table_of(name)
    if rules.only is not None and table not in rules.only:
        raise table_refused(table)
    if _among(name, (column for column, _ in rules.masks)):
        raise hidden(name, "is masked for this caller")
    if _among(table, (filtered for filtered, _ in rules.filters)):
        raise hidden(name, "belongs to entities of which some are hidden from this caller")


def shown_of(name: str, rules: DataRules) -> Show | None:
    """What is shown of a masked attribute; None for one that is not masked."""
    return next((show for column, show in rules.masks if _among(name, (column,))), None)


def table_of(name: str) -> str:
    """The table that rules know an attribute's entities by."""
    space, _, rest = name.rpartition("/")
    return space or rest


def hidden(name: str, why: str) -> TidegateError:
    """The refusal of an attribute."""
    return masking_refused(f"The attribute :{name[:80]} {why}", "source.masking", _HINT)


def _among(name: str, hiding: Iterable[str]) -> bool:
    """Whether one of the names, which hide something, is this one, after a schema or not."""
    plain = _plain(name)
    return any(
        each == plain or each.endswith(f".{plain}") for each in (_plain(each) for each in hiding)
    )


def _plain(name: str) -> str:
    """A name in which `/` and `.` and letters of either case are the same, so that a rule that
    hides holds however it is written."""
    return name.replace("/", ".").casefold()
