"""What a card says of the call that was allowed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.model.sources import Source
from tidegate.products.console.cards import (
    CHOSEN_COLORS,
    COLORS,
    LONGEST_RUN_S,
    NOTED_S,
    Rights,
    card_of,
    is_settled,
)
from tidegate.store.records import ApprovedRun, PendingApproval, Subject

SUBJECT = Subject(
    *("claude", "", "core", "query", "shop", "s1", "DELETE FROM t", "write"),
    rule="source.approval_for",
    reason="It deletes rows",
)
RIGHTS = Rights(allow=True, deny=True)


def used(run: ApprovedRun | None) -> PendingApproval:
    return PendingApproval(
        *("q1", "d1", "used", "t1", SUBJECT, 900.0), decided_at=950.0, ended_at=1_000.0, run=run
    )


def state_at(now: float, run: ApprovedRun | None) -> Any:
    shown = card_of(used(run), RIGHTS, None, now)["run"]
    return None if shown is None else shown["state"]


@pytest.mark.parametrize(
    ("run", "longest"),
    [(None, NOTED_S), (ApprovedRun("running", 1_000.0, "c1"), LONGEST_RUN_S)],
)
def test_a_call_of_which_no_server_will_note_the_end_is_unknown_after_a_while(
    run: ApprovedRun | None, longest: float
) -> None:
    first = None if run is None else "running"
    assert state_at(1_001.0, run) == first and state_at(999.0 + longest, run) == first
    assert state_at(1_001.0 + longest, run) == "unknown"
    assert is_settled(used(run), 1_001.0 + longest)


@pytest.mark.parametrize("state", ["done", "failed", "unknown"])
def test_what_is_known_of_a_call_stays(state: Any) -> None:
    assert state_at(10_000_000.0, ApprovedRun(state, 1_000.0, "c1")) == state


def test_a_card_has_the_color_and_the_group_that_its_source_was_given() -> None:
    shop = Source("s1", "shop", "sqlite://", "sqlite", "sqlite")
    plain = card_of(used(None), RIGHTS, shop, 1_000.0)["source"]
    assert plain == card_of(used(None), RIGHTS, None, 1_000.0)["source"]
    assert 0 <= plain["color"] < COLORS and plain["group"] == ""
    given = structs.replace(shop, color="red", group="live")
    shown = card_of(used(None), RIGHTS, given, 1_000.0)["source"]
    assert shown == {"name": "shop", "color": COLORS, "group": "live"}
    assert CHOSEN_COLORS[0] == "red" and COLORS + len(CHOSEN_COLORS) == 21  # the page's styles
