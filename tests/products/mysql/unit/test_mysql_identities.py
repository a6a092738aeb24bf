"""A change on MySQL or MariaDB cannot become another caller than the one it runs for."""

from __future__ import annotations

import pytest
from msgspec import structs

from support.permits import permit_for
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.mysql.engine.inspect import check_change
from tidegate.sql.judge import judge

SOURCE = Source("s1", "shop", "mysql://db/shop", "mysql", "mysql")
BEN = Identity("ben", (("tenant", "2"),))


def check(text: str, identity: Identity | None) -> None:
    permit = permit_for(SOURCE, Query(Statement(text)), Effect.DESTRUCTIVE)
    check_change(text, judge(text, "mysql"), structs.replace(permit, identity=identity))


@pytest.mark.parametrize(
    "text",
    [
        "SET @tenant = 1",
        "SET ROLE ann",
        "UPDATE t SET a = (@tenant := 1)",
        "INSERT INTO t SELECT @tenant:=1",
        "SELECT 1 INTO @tenant",
        "SELECT a FROM t LIMIT 1 INTO @`tenant`",
    ],
)
def test_a_statement_that_sets_who_the_caller_is_does_not_run(text: str) -> None:
    with pytest.raises(TidegateError) as refused:
        check(text, BEN)
    assert refused.value.code is Code.POLICY_DENIED
    assert refused.value.details["rule"] == "source.run_as"


def test_without_an_identity_variables_are_the_statements_own() -> None:
    check("UPDATE t SET a = (@n := 1)", None)
    check("UPDATE t SET a = @tenant", BEN)
    check("INSERT INTO t VALUES (1)", BEN)
