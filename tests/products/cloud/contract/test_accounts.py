"""A statement reads one provider by several of its accounts."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from support.cloud_api import Farm, Reply
from tidegate.errors import Code
from tidegate.model.sources import Source
from tidegate.results.notes import partial_note


@pytest.fixture
def farms(opened: Any, farm: Farm, tmp_path: Path) -> Any:
    """A source with three accounts, two of them in the group `live`."""
    accounts: dict[str, Any] = {}
    for name, groups in (("prod", ["live"]), ("shop", ["live", "small"]), ("dev", [])):
        path = tmp_path / name
        path.write_text(f"secret-of-{name}\n")
        login = {"type": "bearer", "credentialsfilepath": str(path)}
        accounts[name] = {"auth": login, "groups": groups, "regions": ["eu", "us"]}
    (settings,) = [json.loads(text) for name, text in farm.options if name == "settings"]
    settings["providers"] = {"farm": {"accounts": accounts}}
    return opened(settings=json.dumps(settings))


def logins(farm: Farm) -> list[str]:
    return sorted(str(each).removeprefix("Bearer secret-of-") for each in farm.logins)


async def test_an_account_is_a_column_and_its_credential_is_sent(farms: Any, farm: Farm) -> None:
    query = "SELECT account, name FROM farm.live.animals WHERE id = 3"
    assert await farms(f"{query} AND account = 'dev'") == [("dev", "animal 3")]
    assert logins(farm) == ["dev"]
    assert await farms(query) == [(None, "animal 3")]
    assert farm.logins[-1] is None


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("account = '*'", ["dev", "prod", "shop"]),
        ("account = 'live'", ["prod", "shop"]),
        ("account IN ('prod', 'dev')", ["dev", "prod"]),
        ("account IN ('live', 'small', 'shop')", ["prod", "shop"]),
    ],
)
async def test_a_list_a_group_and_a_star_ask_each_account_once(
    farms: Any, farm: Farm, condition: str, asked: list[str]
) -> None:
    rows = await farms(
        f"SELECT account, count(*) FROM farm.live.animals WHERE {condition} GROUP BY 1 ORDER BY 1"
    )
    assert rows == [(each, 12) for each in asked]
    assert logins(farm) == asked


async def test_accounts_are_joined_and_compared(farms: Any, farm: Farm) -> None:
    rows = await farms(
        "SELECT f.account, count(*) FROM farm.live.fields f"
        " JOIN farm.live.herd h ON h.field = f.name AND h.account = f.account"
        " WHERE f.account = 'live' GROUP BY 1 ORDER BY 1"
    )
    assert rows == [("prod", 12), ("shop", 12)]
    assert logins(farm) == ["prod"] * 4 + ["shop"] * 4


async def test_an_account_that_is_not_known_names_those_that_are(farms: Any, farm: Farm) -> None:
    error = await farms.refusal("SELECT * FROM farm.live.animals WHERE account = 'other'")
    assert error.code is Code.ARGUMENT_INVALID
    assert "dev" in error.hint and "live" in error.hint
    assert farm.asked == []


async def test_a_refused_account_is_named_and_no_secret_is_shown(farms: Any, farm: Farm) -> None:
    farm.special["/animals/3"] = lambda count: Reply(401, {"said": "secret-of-dev is wrong"})
    error = await farms.refusal("SELECT * FROM farm.live.animals WHERE id = 3 AND account = 'dev'")
    assert "dev" in error.message and "secret-of" not in f"{error.message}{error.hint}"


async def test_a_secret_is_not_shown_in_the_spelling_of_urls_and_json(
    opened: Any, farm: Farm, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_text('k3y+of/a"b==\n')
    (settings,) = [json.loads(text) for name, text in farm.options if name == "settings"]
    login = {"type": "bearer", "credentialsfilepath": str(path)}
    settings["providers"] = {"farm": {"auth": login}}
    ask = opened(settings=json.dumps(settings))
    quoted = "?key=k3y%2Bof%2Fa%22b%3D%3D&k3y%2bof/a%22b%3d%3d"
    farm.special["/animals/3"] = lambda _: Reply(400, {"url": quoted, "key": 'k3y+of/a"b=='})
    error = await ask.refusal("SELECT * FROM farm.live.animals WHERE id = 3")
    assert "?key=***" in error.message
    assert "k3y" not in error.message
    for spelled in (
        r"k3y\u002bof/a\u0022b\u003d\u003D",
        r"k3y\u002Bof\/a\"b==",
        "k3y&#43;of&#x2F;a&quot;b&#061;=",
        "k3y%252Bof%252fa%2522b==",
    ):
        farm.special["/animals/3"] = lambda _, said=spelled: Reply(400, {"url": f"?{said}."})
        error = await ask.refusal("SELECT * FROM farm.live.animals WHERE id = 3")
        assert "?***." in error.message, spelled


@pytest.mark.parametrize(
    ("login", "secrets"),
    [
        ({"type": "bearer", "credentialsenvvar": "FARM_KEY"}, {"FARM_KEY": "h1dden key"}),
        (
            {"type": "api_key", "credentialsenvvar": "FARM_KEY", "valuePrefix": "SSWS "},
            {"FARM_KEY": "h1dden key"},
        ),
        (
            {"type": "basic", "username_var": "FARM_USER", "password_var": "FARM_KEY"},
            {"FARM_USER": "ann", "FARM_KEY": "h1dden key"},
        ),
        (
            {"type": "basic", "credentialsenvvar": "FARM_KEY"},
            {"FARM_KEY": base64.b64encode(b"ann:h1dden key").decode()},
        ),
        (
            {"type": "basic", "credentialsenvvar": "FARM_KEY"},
            {"FARM_KEY": base64.b64encode(b"h1dden key:").decode()},
        ),
        (
            {"type": "custom", "name": "X-Key", "credentialsenvvar": "FARM_KEY"},
            {"FARM_KEY": "h1dden key"},
        ),
        (
            {
                "type": "custom",
                "name": "key",
                "location": "query",
                "credentialsenvvar": "FARM_KEY",
            },
            {"FARM_KEY": "h1dden key"},
        ),
    ],
)
@pytest.mark.parametrize("status", [400, 401, 403, 500])
async def test_an_error_that_quotes_the_login_that_was_sent_holds_no_secret(
    opened: Any,
    monkeypatch: pytest.MonkeyPatch,
    login: dict[str, Any],
    secrets: dict[str, str],
    status: int,
) -> None:
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)

    def quote(verb: str, path: str, query: dict[str, str], body: Any) -> Reply:
        given = [
            *query.values(),
            farm.headers.get("Authorization", ""),
            farm.headers.get("X-Key", ""),
        ]
        pairs = [each.partition("Basic ")[2] for each in given if each.startswith("Basic ")]
        user, _, word = base64.b64decode(pairs[0]).decode().partition(":") if pairs else ("",) * 3
        return Reply(status, {"given": given, "user": user if not word else "", "password": word})

    farm = Farm(quote)
    try:
        settings = {
            "endpoints": {"https://api.farm.example": farm.url},
            "providers": {"farm": {"auth": login}},
        }
        error = await opened(settings=json.dumps(settings)).refusal(
            "SELECT name FROM farm.live.animals WHERE id = 3"
        )
        assert farm.asked
    finally:
        farm.close()
    assert error.details["http_status"] == status
    assert "***" in error.message
    for hidden in ("h1dden", *secrets.values()):
        if hidden != "ann":
            assert hidden not in f"{error.message} {error.hint}"


async def test_a_change_is_made_with_the_account_that_it_names(farms: Any, farm: Farm) -> None:
    await farms("DELETE FROM farm.live.animals WHERE id = 3 AND account = 'shop'")
    assert farm.paths("DELETE") == ["/animals/3"] and logins(farm) == ["shop"]
    assert 3 not in farm.animals
    error = await farms.refusal("DELETE FROM farm.live.animals WHERE id = 4 AND account = 'live'")
    assert error.code is Code.ARGUMENT_INVALID and 4 in farm.animals


def test_regions_are_those_of_each_account() -> None:
    from tidegate.errors import TidegateError
    from tidegate.products.cloud.documents.accounts import account_parameter, spread
    from tidegate.products.cloud.documents.model import (
        Method,
        Parameter,
        Provider,
        Response,
        Server,
        Settings,
    )
    from tidegate.products.cloud.settings import CloudAccount

    accounts = {"a": CloudAccount(regions=("eu", "us")), "b": CloudAccount(regions=("ap",))}
    provider = Provider("p", "v", "", "", {}, {}, Settings(), False, accounts)
    region = Parameter("region", "region", "server", True, {})
    method = Method(
        "m", "GET", "/", (), Server("https://x", {}), (region, account_parameter(set())), None,
        Response("200", "", None, None), Settings(), "", "",
    )  # fmt: skip
    calls = spread(provider, method, (("account", "*"), ("region", "*")))
    assert [dict(each) for each in calls] == [
        {"account": "a", "region": "eu"},
        {"account": "a", "region": "us"},
        {"account": "b", "region": "ap"},
    ]
    with pytest.raises(TidegateError, match="needs the regions"):
        spread(provider, method, (("region", "*"),))


SKIP = "SELECT /*+ on_error=skip */"


def deny(farm: Farm, path: str, *accounts: str, status: int = 403) -> None:
    """The API refuses these accounts; the requests of a statement come one after another."""

    def answered(count: int) -> Reply:
        account = str(farm.logins[-1]).removeprefix("Bearer secret-of-")
        if account in accounts:
            return Reply(status, {"message": "not for you"})
        return Reply(200, {"items": list(farm.animals.values())})

    farm.special[path] = answered


async def test_a_denied_account_is_left_out_and_named_where_the_statement_says_so(
    farms: Any, farm: Farm
) -> None:
    farms.source = with_option(farms.source, "concurrency", "1")
    deny(farm, "/animals", "shop")
    query = "account, count(*) FROM farm.live.animals WHERE account = '*' GROUP BY 1 ORDER BY 1"
    error = await farms.refusal(f"SELECT {query}")
    assert error.code is Code.CREDENTIAL_REFUSED
    assert await farms(f"{SKIP} {query}") == [("dev", 12), ("prod", 12)]
    skipped = farms.cursor.upstream.skipped
    assert [(each.resource, each.account, each.http_status) for each in skipped] == [
        ("farm.live.animals", "shop", 403)
    ]
    note = partial_note(skipped)
    assert note.startswith(
        "Partial: denied and left out were farm.live.animals of the account shop (HTTP 403)."
    )
    assert "aggregates are of the rest alone" in note


async def test_nothing_but_denials_and_other_failures_are_errors_all_the_same(
    farms: Any, farm: Farm
) -> None:
    farms.source = with_option(farms.source, "concurrency", "1")
    query = "count(*) FROM farm.live.animals WHERE account = '*'"
    deny(farm, "/animals", "shop", "prod", "dev")
    assert (await farms.refusal(f"{SKIP} {query}")).code is Code.CREDENTIAL_REFUSED
    deny(farm, "/animals", "shop", status=400)
    assert (await farms.refusal(f"{SKIP} {query}")).code is Code.PROVIDER_FAILED
    deny(farm, "/animals", "None")
    error = await farms.refusal(f"{SKIP} count(*) FROM farm.live.animals")
    assert error.code is Code.CREDENTIAL_REFUSED
    before = len(farm.asked)
    error = await farms.refusal(
        "DELETE /*+ on_error=skip */ FROM farm.live.animals WHERE id = 3 AND account = '*'"
    )
    assert "on_error=skip is for a query" in error.message
    assert len(farm.asked) == before
    assert 3 in farm.animals


def with_option(source: Source, name: str, value: str) -> Source:
    return structs.replace(source, options=(*source.options, (name, value)))


async def test_what_a_graphql_reply_says_of_an_error_holds_no_secret_of_the_login(
    farms: Any, farm: Farm
) -> None:
    query = "SELECT n FROM farm.live.stars WHERE account = 'prod'"
    said = "the token secret-of-prod is not for stars"
    farm.special["/graphql"] = lambda _: Reply(200, {"data": None, "errors": [{"message": said}]})
    error = await farms.refusal(query)
    assert error.code is Code.PROVIDER_FAILED
    assert "the token *** is not for stars" in error.message
    rows = {"data": {"stars": [{"n": 1}]}, "errors": []}
    farm.special["/graphql"] = lambda _: Reply(200, rows)
    assert await farms(query) == [(1,)]
    assert logins(farm) == ["prod", "prod"]
