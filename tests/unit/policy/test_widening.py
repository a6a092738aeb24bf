"""Which change of a source's settings grants more: each is known, and none that grants less."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.model.source_settings import Mask, RowFilter, RunAs
from tidegate.model.sources import Source
from tidegate.policy.widening import only_narrows, widened

SHOP = Source("s1", "shop", "postgresql://ann:${ENV:PW}@db/shop", "postgres", "postgres")
STRICTEST_FIRST = {
    "access": ("none", "read", "write", "admin"),
    "agents": ("deny", "ask", "allow"),
    "approval_for": ("everything", "writes", "nothing"),
    "changes": ("deny", "allow"),
    "approval": ("inbox", "any"),
    "unattended": ("deny", "allow"),
    "unqualified": ("deny", "confirm", "allow"),
    "destructive_scope": ("fullAccess", "readWrite"),
    "undo": ("require", "keep", "off"),
    "costly_plans": ("deny", "ask"),
}
STEPS = [
    (name, words[before], words[after])
    for name, words in STRICTEST_FIRST.items()
    for before in range(len(words))
    for after in range(len(words))
]


def change(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    return widened(structs.replace(SHOP, **before), structs.replace(SHOP, **after))


@pytest.mark.parametrize(("name", "before", "after"), STEPS)
def test_a_setting_grants_more_exactly_when_its_word_is_less_strict(
    name: str, before: str, after: str
) -> None:
    words = STRICTEST_FIRST[name]
    grants = words.index(after) > words.index(before)
    assert change({name: before}, {name: after}) == ((name,) if grants else ())


MASK, OTHER = Mask("a.b"), Mask("c.d")
ROWS, LESS = RowFilter("a", "x = 1"), RowFilter("a", "x < 9")


@pytest.mark.parametrize(
    ("before", "after", "grants"),
    [
        ({"masks": (MASK,)}, {"masks": ()}, ("masks",)),
        ({"masks": (MASK,)}, {"masks": (OTHER,)}, ("masks",)),
        ({"masks": (MASK,)}, {"masks": (OTHER, MASK)}, ()),
        ({"masks": ()}, {"masks": (MASK,)}, ()),
        ({"filters": (ROWS,)}, {"filters": (LESS,)}, ("filters",)),
        ({"filters": (ROWS,)}, {"filters": (LESS, ROWS)}, ()),
        ({"tags": ("a",)}, {"tags": ("a", "b")}, ("tags",)),
        ({"tags": ("a", "b")}, {"tags": ("a",)}, ("tags",)),
        ({"tags": ("a", "b")}, {"tags": ("b", "a")}, ()),
        ({}, {"url": "postgresql://ann:${FILE:/pw}@db/shop"}, ()),
        ({}, {"url": "postgresql://bob:${ENV:PW}@db/shop"}, ("url",)),
        ({}, {"url": "postgresql://ann:${ENV:PW}@db/other"}, ("url",)),
        ({}, {"run_as": RunAs("reader")}, ("run_as",)),
        ({"run_as": RunAs("reader")}, {}, ("run_as",)),
        ({}, {"options": (("a", "b"),)}, ("options",)),
        ({"options": (("a", "b"),)}, {}, ("options",)),
        ({"max_rows_changed": 5}, {"max_rows_changed": 6}, ("max_rows_changed",)),
        ({"max_rows_changed": 5}, {"max_rows_changed": None}, ("max_rows_changed",)),
        ({"max_rows_changed": 5}, {"max_rows_changed": 5}, ()),
        ({"max_rows_changed": 6}, {"max_rows_changed": 5}, ()),
        ({"max_rows_changed": None}, {"max_rows_changed": 5}, ()),
        ({"max_plan_cost": 5}, {"max_plan_cost": 6}, ("max_plan_cost",)),
        ({"max_plan_cost": 5}, {}, ("max_plan_cost",)),
        ({"max_plan_rows": 5}, {}, ("max_plan_rows",)),
        ({"max_plan_rows": 6}, {"max_plan_rows": 5}, ()),
        ({}, {"name": "other"}, ()),
        ({"color": "red", "group": "live"}, {"color": "auto", "group": ""}, ()),
        (
            {"masks": (MASK,), "access": "read"},
            {"access": "write", "tags": ("a",), "url": "sqlite:///x"},
            ("access", "masks", "tags", "url"),
        ),
    ],
)
def test_what_hides_data_and_where_it_leads_grants_more_by_any_loss(
    before: dict[str, Any], after: dict[str, Any], grants: tuple[str, ...]
) -> None:
    assert change(before, after) == grants


def test_each_setting_of_a_source_either_grants_something_or_says_only_what_it_is():
    other: dict[str, Any] = {
        **{name: words[-1] for name, words in STRICTEST_FIRST.items()},
        "tags": ("a",),
        "url": "sqlite:///x",
        "run_as": RunAs("r"),
        "options": (("a", "b"),),
        "masks": (),
        "filters": (),
        "max_rows_changed": None,
        "max_plan_cost": None,
        "max_plan_rows": None,
        "functions": ("app.f",),
    }
    strict: dict[str, Any] = {
        **{name: words[0] for name, words in STRICTEST_FIRST.items()},
        "masks": (MASK,),
        "filters": (ROWS,),
        "max_rows_changed": 1,
        "max_plan_cost": 1,
        "max_plan_rows": 1,
    }
    assert set(change(strict, other)) == set(other)
    describing = {"color", "group"}  # what people see
    describing |= {"id", "name", "engine", "dialect", "ephemeral", "temporary"}
    assert set(other) == set(Source.__struct_fields__) - describing


@pytest.mark.parametrize(
    ("before", "after", "narrows"),
    [
        ({"access": "write"}, {"access": "read"}, True),
        ({}, {"masks": (MASK,), "agents": "ask"}, True),
        ({}, {}, False),
        ({}, {"access": "write"}, False),
        ({"access": "write"}, {"access": "read", "masks": (), "tags": ("a",)}, False),
        ({"color": "red"}, {}, False),
        ({"access": "write", "group": "live"}, {"access": "read"}, False),
        ({}, {"url": "postgresql://ann:${FILE:/pw}@db/shop"}, False),
    ],
)
def test_a_change_only_narrows_when_all_that_it_does_is_to_take_rights_away(
    before: dict[str, Any], after: dict[str, Any], narrows: bool
) -> None:
    was, now = structs.replace(SHOP, **before), structs.replace(SHOP, **after)
    assert only_narrows(was, now) == narrows
