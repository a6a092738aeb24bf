"""Who a caller is to a database: what the settings say, and no one where they say nothing."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Identity, Source
from tidegate.policy.run_as import resolve_run_as

ALICE = Actor("t1", "alice", Scope.READ_ONLY)


def source(run_as):
    return Source("s1", "shop", "postgresql://gate@db/shop", "postgres", "postgres", run_as=run_as)


def test_a_source_that_maps_no_one_leaves_callers_without_an_identity():
    assert resolve_run_as(ALICE, source(None)) is None


@pytest.mark.parametrize(
    ("run_as", "expected"),
    [
        (RunAs("reader"), Identity("reader")),
        (RunAs("app_{actor.name}"), Identity("app_alice")),
        (RunAs("reader", (("alice", "boss"),)), Identity("boss")),
        (RunAs(None, (("alice", "boss"),)), Identity("boss")),
        (RunAs("reader", (("bob", "boss"),)), Identity("reader")),
        (
            RunAs(variables=(("app.actor", "{actor.id}/{actor.name}"), ("app.kind", "agent"))),
            Identity(None, (("app.actor", "t1/alice"), ("app.kind", "agent"))),
        ),
    ],
)
def test_a_caller_is_whom_the_settings_name(run_as, expected):
    assert resolve_run_as(ALICE, source(run_as)) == expected


@pytest.mark.parametrize(
    "run_as",
    [
        RunAs(roles=(("bob", "boss"),)),
        RunAs(roles=(("bob", "boss"),), variables=(("app.actor", "x"),)),
        RunAs(),
        RunAs("{actor.mail}"),
        RunAs("{source.name}"),
        RunAs(""),
        RunAs("a\0b"),
        RunAs("reader", variables=(("app.actor", ""),)),
    ],
)
def test_a_caller_whom_they_do_not_name_gets_no_identity_but_a_refusal(run_as):
    with pytest.raises(TidegateError) as caught:
        resolve_run_as(ALICE, source(run_as))
    assert caught.value.code is Code.POLICY_IDENTITY
    assert caught.value.details["rule"] == "source.run_as"


@pytest.mark.parametrize(
    ("run_as", "reason"),
    [
        (RunAs("{actor.mail}"), "unknown blank {actor.mail}"),
        (RunAs("r", variables=(("v", "x{source.name}"),)), "unknown blank {source.name}"),
        (RunAs(""), "empty name"),
        (RunAs("a\0b"), "empty name"),
        (RunAs(), "No role of this database is named for 'alice'"),
        (RunAs(roles=(("bob", "boss"),)), "No role of this database is named for 'alice'"),
    ],
)
def test_a_refusal_says_what_the_settings_lack(run_as, reason):
    with pytest.raises(TidegateError) as caught:
        resolve_run_as(ALICE, source(run_as))
    assert reason in caught.value.message


def test_a_blank_in_a_callers_name_is_not_filled_again():
    actor = Actor("t1", "{actor.id}", Scope.READ_ONLY)
    assert resolve_run_as(actor, source(RunAs("{actor.name}"))) == Identity("{actor.id}")
