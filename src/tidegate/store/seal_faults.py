"""What is wrong with a row that gives rights, or with a list of seals, and what is said of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from tidegate.store.sealed_lists import SealedList, part_of
from tidegate.store.seen_lists import DOUBT

Fault = Literal["no seal", "removed", "list", "doubt"]

_SAYS: dict[Fault, str] = {
    "no seal": "was written past the gates, and counts as absent",
    "removed": "was removed past the gates",
    "doubt": "may have had fewer rights before the state's server was replaced, and counts as"
    " absent until `tidegate state seal`",
    "list": "has a list of seals that no gate has left so, and counts as absent",
}


def mac_in(lists: Mapping[int, SealedList], name: str) -> bytes | None:
    """The entry of a row in the lists of its area."""
    found = lists.get(part_of(name))
    return None if found is None else found.macs.get(name)


def fault_in(lists: Mapping[int, SealedList], name: str) -> Fault:
    """The fault of a row that does not have the MAC of its entry."""
    return "doubt" if mac_in(lists, name) == DOUBT else "no seal"


def all_removed(entries: SealedList, found: Collection[str]) -> dict[str, Fault]:
    """The faults of entries of which no row was found."""
    return {
        name: "doubt" if mac == DOUBT else "removed"
        for name, mac in entries.macs.items()
        if name not in found
    }


def describe(area: str, name: str, fault: Fault) -> str:
    """The fault in a sentence."""
    return f"the row {name} of `{area}` in the state {_SAYS[fault]}"
