"""An allowlist names sources, tags or both; without either there is none."""

import pytest

from tidegate.model.actors import Actor, Scope
from tidegate.model.sources import Source
from tidegate.policy.allowlist import admits

SHOP = Source("1", "shop", "sqlite:///a.db", "sqlite", "sqlite", tags=("prod", "eu"))


@pytest.mark.parametrize(
    ("sources", "tags", "expected"),
    [
        (None, None, True),
        ({"shop"}, None, True),
        ({"Shop", "sho", "shops"}, None, False),
        (set(), None, False),
        (None, {"prod"}, True),
        (None, {"test"}, False),
        (None, set(), False),
        (None, {"shop"}, False),
        ({"prod"}, None, False),
        ({"other"}, {"eu"}, True),
        ({"shop"}, {"test"}, True),
        ({"other"}, {"test"}, False),
        (set(), set(), False),
    ],
)
def test_a_source_is_admitted_by_its_name_or_by_one_of_its_tags(sources, tags, expected):
    actor = Actor(
        "tok_1",
        "claude",
        Scope.READ_ONLY,
        None if sources is None else frozenset(sources),
        tags=None if tags is None else frozenset(tags),
    )
    assert admits(actor, SHOP) is expected
