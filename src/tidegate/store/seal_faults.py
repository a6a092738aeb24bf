"""What is wrong with a row that gives rights, or with a list of seals, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import Literal

from tidegate.errors import Code, TidegateError
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
_MOST = 100


class Faults:
    """What this process refuses now, for people. Safe to use from any thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Fault] = {}
        self._lock = Lock()
        self.tell: Callable[[str], None] = lambda _: None
        """Is given, once, each row that is refused."""

    def sentences(self) -> tuple[str, ...]:
        """All that is refused."""
        with self._lock:
            return tuple(describe(*place, fault) for place, fault in self._known.items())

    def has_news(self, area: str, faults: Mapping[str, Fault]) -> bool:
        """Whether some of the faults of an area are not known."""
        return any(self._known.get((area, name)) != fault for name, fault in faults.items())

    def note(
        self,
        area: str,
        faults: Mapping[str, Fault],
        good: Collection[str] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        """Keep what is refused, and forget it of the `good` rows; a check of the whole area
        replaces what was known of it."""
        with self._lock:
            news: list[tuple[str, Fault]] = [
                (name, fault)
                for name, fault in faults.items()
                if (area, name) not in self._known and len(self._known) < _MOST
            ]
            for place in [each for each in self._known if each[0] == area]:
                if place[1] in good or (is_whole and place[1] not in faults):
                    del self._known[place]
            for name, fault in news:
                self._known[area, name] = fault
        for name, fault in news:
            self.tell(describe(area, name, fault))


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


def foreign_values(area: str) -> TidegateError:
    """The refusal of what the database makes of a statement of a gate."""
    return seals_refused(
        f"The state's database keeps other values in `{area}` than were written.",
        "Search its tables for triggers and rules that are not Tidegate's.",
        Code.STATE_FAILED,
    )


def seals_refused(
    message: str,
    hint: str,
    code: Literal[Code.STATE_FAILED, Code.CONFIG_INVALID],
    area: str = "",
) -> TidegateError:
    """The refusal of a state whose seals are not as a gate left them; `area` is of which rows."""
    return TidegateError(code, message, hint=hint, details={"area": area} if area else {})
