"""Budgets in the console: who sees and changes which, with the passphrase where more is given."""

from __future__ import annotations

from typing import Any

import httpx

from products.console.support.console_place import PASSPHRASE, Place, query, ran
from support.console_visitor import Visitor

YES = {"passphrase": PASSPHRASE}
TOKEN: dict[str, Any] = {"scope": "readOnly", "sources": ["towns"], "tags": None, "tables": None}
ROLES = {
    "ada": (),
    "sue": ("--role", "admin", "--source", "towns"),
    "oli": ("--role", "admin", "--source", "other"),
    "app": ("--role", "approver"),
    "vic": ("--role", "viewer"),
}


def budget(**changes: Any) -> dict[str, Any]:
    return {
        "measure": "calls", "window": "hour", "amount": "5", "token": "bot", "source": "towns",
        "was": None, **changes,
    }  # fmt: skip


def put(visitor: Visitor, **changes: Any) -> httpx.Response:
    return visitor.post("access/budgets", budget(**changes))


def shown(visitor: Visitor) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = visitor.get("access/budgets").json()["budgets"]
    return found


def test_a_budget_is_set_changed_and_removed_and_running_agents_follow(place: Place) -> None:
    ada = place.visitor()
    secret = ada.post("access/tokens", {**TOKEN, "name": "bot", **YES}).json()["secret"]
    agent = place.agent(secret)
    assert ran(query(agent, "SELECT 1"))
    assert put(ada, amount="1").status_code == 200
    assert ran(query(agent, "SELECT 2"))
    refused = query(agent, "SELECT 3").text
    assert "limit.budget" in refused and "an admin of the source towns can raise it" in refused
    (there,) = shown(ada)
    assert (there["about"], there["size"]) == ("the token bot on towns", "1 call an hour")
    assert (there["left"], there["share"], there["changed_by"]) == ("0 calls", 0.0, "ada")
    # More needs the passphrase, each time; less does not.
    assert put(ada, amount="3", was=1).json()["error"] == "operator.consent"
    assert put(ada, amount="3", was=1, passphrase="wrong").status_code == 403
    assert "limit.budget" in query(agent, "SELECT 4").text
    assert put(ada, amount="3", was=1, **YES).status_code == 200
    assert ran(query(agent, "SELECT 5"))
    assert put(ada, amount="0", was=3).status_code == 200
    assert "limit.budget" in query(agent, "SELECT 6").text
    path = f"access/budgets/{there['id']}/remove"
    assert ada.post(path, {"was": 0}).json()["error"] == "operator.consent"
    assert ada.post(path, {"was": 3, **YES}).json()["error"] == "access.changed"
    assert ada.post(path, {"was": 0, **YES}).status_code == 204
    assert ran(query(agent, "SELECT 7")) and shown(ada) == []
    names = [each["name"] for each in place.events() if each["name"].startswith("budget.")]
    assert names == ["budget.changed"] * 3 + ["budget.removed"]


def test_operators_see_and_change_those_that_they_have_rights_over(place: Place) -> None:
    for name, flags in ROLES.items():
        if name != "ada":
            place.add_operator(name, *flags)
    visitors = {name: place.visitor(name) for name in ROLES}
    ada = visitors["ada"]
    assert ada.post("access/tokens", {**TOKEN, "name": "bot", **YES}).status_code == 201
    wide = {**TOKEN, "name": "wide", "sources": None, **YES}
    assert ada.post("access/tokens", wide).status_code == 201
    abouts = {
        "bot": {"token": "bot", "source": ""},
        "bot on towns": {"token": "bot", "source": "towns"},
        "wide": {"token": "wide", "source": ""},
        "ada's": {"token": "", "owner": "ada", "source": ""},
        "all on towns": {"token": "", "source": "towns"},
    }
    sues = {"bot", "bot on towns", "all on towns"}
    for what, about in abouts.items():
        for name, visitor in reversed(visitors.items()):
            answer = put(visitor, **about)
            if name == "ada" or (name == "sue" and what in sues):
                assert answer.status_code == 200, (what, name, answer.text)
                id = answer.json()["id"]
                assert len(shown(visitors["oli"])) == len(shown(visitors["vic"])) == 0
                for other in ("vic", "app", "oli"):
                    path = f"access/budgets/{id}/remove"
                    assert visitors[other].post(path, {"was": 5, **YES}).status_code == 403
                if name == "sue":
                    assert ada.post(f"access/budgets/{id}/remove", {"was": 5, **YES}).is_success
            else:
                assert (answer.status_code, answer.json()["error"]) == (403, "policy.denied")
    assert {each["about"] for each in shown(ada)} == {
        "the token bot", "the token bot on towns", "the token wide", "the tokens of ada",
        "all callers on towns",
    }  # fmt: skip
    assert len(shown(visitors["sue"])) == 3
    (hidden,) = [each["id"] for each in shown(ada) if each["token"] == "wide"]
    gone = visitors["sue"].post(f"access/budgets/{hidden}/remove", {"was": 5, **YES})
    assert gone.status_code == 403


def test_what_names_nothing_or_was_changed_meanwhile_is_refused(place: Place) -> None:
    ada = place.visitor()
    assert put(ada, token="nobody").status_code == 400
    assert put(ada, token="", source="").status_code == 400
    assert put(ada, token="", source="none").status_code in (400, 404)
    assert put(ada, token="", amount="many").status_code == 400
    assert put(ada, token="").status_code == 200
    assert put(ada, token="", amount="4").json()["error"] == "access.changed"
    assert put(ada, token="", amount="4", was=7).json()["error"] == "access.changed"
    assert [each["units"] for each in shown(ada)] == [5]
