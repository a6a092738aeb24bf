"""An engine performs what its permit is for, and no other kind of request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from support.permits import permit_for
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    describes_change,
    dry_run_query_of,
    operation_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.roles import refuse_identity, role_of
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, EngineRequest, Explain, Operation, Prepare, Query
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Statement

SHOP = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite")
READ = Statement("SELECT 1")
CHANGE = Statement("INSERT INTO t VALUES (1)")
REQUESTS: dict[str, EngineRequest] = {
    "query": Query(READ),
    "explain": Explain(READ),
    "prepare": Prepare(READ),
    "browse": Browse("catalog"),
    "operation": Operation(name="compact"),
}
TAKEN: list[tuple[Any, set[str], bool]] = [
    (query_of, {"query", "explain"}, True),
    (prepare_of, {"query", "explain", "prepare"}, True),
    (dry_run_query_of, {"query"}, True),
    (operation_of, {"operation"}, False),
    (describe_of, {"browse"}, False),
]


def refusal(check: Any, permit: Permit) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        check(permit)
    return caught.value


@pytest.mark.parametrize(("check", "kinds", "is_judged"), TAKEN)
@pytest.mark.parametrize("kind", sorted(REQUESTS))
def test_a_step_takes_its_own_kinds_of_requests_alone(
    check: Any, kinds: set[str], is_judged: bool, kind: str
) -> None:
    request = REQUESTS[kind]
    permit = permit_for(SHOP, request)
    if kind not in kinds:
        assert refusal(check, permit).code is Code.UNSUPPORTED
    elif is_judged:
        assert check(permit) == (request, permit.judgement)
    else:
        assert check(permit) is request


@pytest.mark.parametrize("check", [query_of, prepare_of, dry_run_query_of])
def test_a_permit_for_another_statement_or_without_a_judgement_runs_nothing(check: Any) -> None:
    permit = permit_for(SHOP, Query(READ))
    for other in (
        structs.replace(permit, judged_text="SELECT 2"),
        structs.replace(permit, judged_text=None),
        structs.replace(permit, judgement=None),
    ):
        assert refusal(check, other).code is Code.INTERNAL


def described(request: EngineRequest) -> bool:
    return describes_change(permit_for(SHOP, request))


def test_a_change_is_described_if_its_request_says_so_and_the_gate_takes_it_for_one() -> None:
    assert described(Prepare(CHANGE, changes=True))
    assert not described(Prepare(CHANGE))
    assert not described(Prepare(READ, changes=True))
    assert not described(Prepare(Statement("DROP TABLE t"), changes=True))
    assert not described(Query(CHANGE))
    assert not described(Browse("catalog"))
    permit = permit_for(SHOP, Prepare(CHANGE, changes=True))
    assert not describes_change(structs.replace(permit, judgement=None))


def test_a_search_sets_only_what_the_engine_lists() -> None:
    def tunes(name: str, value: str) -> bool:
        return (name, value) == ("probes", "5")

    def asked(*tuning: tuple[str, str]) -> Permit:
        return permit_for(SHOP, Query(READ, tuning=tuning))

    request, _ = query_of(asked(("probes", "5")), tunes)
    assert request.tuning == (("probes", "5"),)
    with pytest.raises(TidegateError, match="'probes' to '6'") as caught:
        query_of(asked(("probes", "5"), ("probes", "6")), tunes)
    assert caught.value.code is Code.UNSUPPORTED
    with pytest.raises(TidegateError):
        query_of(asked(("probes", "5")))
    with pytest.raises(TidegateError) as caught:
        query_of(asked(("n" * 200, "v" * 200)), tunes)
    assert f"'{'n' * 80}' to '{'v' * 80}'" in caught.value.message


def test_a_cancelled_call_goes_no_further() -> None:
    cancellation = Cancellation()
    check_cancelled(cancellation)
    cancellation.cancel("cancelled")
    with pytest.raises(TidegateError) as caught:
        check_cancelled(cancellation)
    assert caught.value.code is Code.CALL_CANCELLED


@pytest.mark.parametrize("role", ["", " ", "none", "NONE", " Default ", "all"])
def test_a_role_that_means_none_is_refused(role: str) -> None:
    with pytest.raises(TidegateError) as caught:
        role_of(Identity(role))
    assert caught.value.code is Code.POLICY_IDENTITY
    assert caught.value.details["rule"] == "source.run_as"
    assert caught.value.hint is not None


def test_a_role_stays_as_it_is_written() -> None:
    assert role_of(Identity(" Reader ")) == " Reader "
    assert role_of(Identity(None)) is None


def test_an_engine_without_roles_runs_as_no_one() -> None:
    permit = permit_for(SHOP, Query(READ))
    refuse_identity(permit)
    with pytest.raises(TidegateError) as caught:
        refuse_identity(structs.replace(permit, identity=Identity("reader")))
    assert caught.value.code is Code.POLICY_IDENTITY
    assert permit.effect is Effect.READ
