"""The database that the environment describes, for `serve --surface postgres`."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.environment import database_of_environment


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        (
            {"PGHOST": "db.example", "PGUSER": "reader", "PGDATABASE": "shop"},
            "postgresql://reader@db.example:5432/shop",
        ),
        (
            {"PGEDGE_DB_HOST": "a", "PGHOST": "b", "PGPORT": "5433", "PGEDGE_DB_NAME": "n"},
            "postgresql://a:5433/n",
        ),
        (
            {"PGHOST": "h", "PGUSER": "u", "PGPASSWORD": "hush", "PGSSLMODE": "require"},
            "postgresql://u:${ENV:PGPASSWORD}@h:5432/?sslmode=require",
        ),
        (
            {"PGHOST": "h", "PGUSER": "a@b", "PGEDGE_DB_PASSWORD": "hush", "PGPASSWORD": "no"},
            "postgresql://a%40b:${ENV:PGEDGE_DB_PASSWORD}@h:5432/",
        ),
        (
            {"PGHOST": "/var/run/postgresql", "PGUSER": "u", "PGDATABASE": "my db"},
            "postgresql://u@/my%20db?host=/var/run/postgresql&port=5432",
        ),
        ({"PGHOST": "::1", "PGDATABASE": "d"}, "postgresql://[::1]:5432/d"),
        ({"PGUSER": "u"}, "postgresql://u@localhost:5432/"),
    ],
)
def test_each_part_comes_from_its_variable_and_the_password_stays_there(
    environment: dict[str, str], url: str
) -> None:
    found = database_of_environment(environment)
    assert found is not None
    assert (found.name, found.url, found.access) == ("default", url, "read")
    assert "hush" not in found.url


@pytest.mark.parametrize(
    "environment", [{}, {"PGPORT": "5432"}, {"PGPASSWORD": "hush"}, {"PGHOST": ""}]
)
def test_without_a_host_a_name_or_a_user_there_is_none(environment: dict[str, str]) -> None:
    assert database_of_environment(environment) is None


@pytest.mark.parametrize("port", ["x", "0", "70000", "-1"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    with pytest.raises(TidegateError) as refused:
        database_of_environment({"PGHOST": "h", "PGPORT": port})
    assert refused.value.code is Code.CONFIG_INVALID
    assert "$PGPORT" in refused.value.message
