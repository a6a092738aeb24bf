"""Tables by form over HTTP: the form of a table, the statements, and who may run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk, ended_run
from support.eventually import wait_until

SOURCES = ("lite", "pg")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("forms"), SOURCES, masks=False) as found:
        yield found


def form_of(visitor: Visitor, source: str, table: str = "") -> Any:
    return answer(visitor.get(f"data/form?source={source}&table={table}"))


def plan_of(visitor: Visitor, source: str, form: Any, table: str = "", was: Any = None) -> Any:
    body = {"source": source, "form": form, "table": table, "was": was}
    return answer(visitor.post("data/form-plan", body))


def run_all(visitor: Visitor, source: str, plan: Any) -> list[Any]:
    assert plan["lacks"] == []
    runs = []
    for step in plan["steps"]:
        body = {"source": source, "statement": step["text"]}
        runs.append(ended_run(visitor, answer(visitor.post("data/runs", body))["id"]))
    return runs


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_is_made_and_changed_by_the_statements_of_its_form(
    place: Desk, source: str
) -> None:
    ada = place.visitor("ada")
    empty = form_of(ada, source)
    number = "integer" if source == "pg" else "INTEGER"
    assert number in empty["types"]
    assert {"schema": empty["form"]["schema"], "name": "customers", "key": ["id"]} in empty[
        "tables"
    ]
    columns = [
        {"name": "id", "type": number, "nullable": False},
        {"name": "size", "type": number, "default": {"kind": "literal", "text": "5"}},
    ]
    wanted = {**empty["form"], "name": "made here", "columns": columns, "primary_key": ["id"]}
    plan = plan_of(ada, source, wanted)
    assert [(each["effect"], each["verdict"]) for each in plan["steps"]] == [("write", "allow")]
    vera = place.visitor("vera")
    assert plan_of(vera, source, wanted)["steps"][0]["verdict"] == "deny"
    (refused,) = run_all(vera, source, plan)
    assert (refused["state"], refused["code"]) == ("failed", "policy.scope")
    (made,) = run_all(ada, source, plan)
    assert made["state"] == "done", made["message"]
    was, form = (form_of(ada, source, "made here")["form"] for _ in range(2))
    assert [each["name"] for each in form["columns"]] == ["id", "size"]
    form["columns"][1]["name"] = "weight"
    form["columns"].append({"name": "word", "type": "TEXT"})
    plan = plan_of(ada, source, form, "made here", was)
    assert bool(plan["stays"]) == (len(plan["steps"]) > 1)
    assert {each["state"] for each in run_all(ada, source, plan)} == {"done"}
    found = form_of(ada, source, "made here")["form"]
    assert [each["name"] for each in found["columns"]] == ["id", "weight", "word"]
    assert plan_of(ada, source, found, "made here", found)["steps"] == []
    # A form of the table before would drop what another has added since.
    for before in (was, None):
        late = plan_of(ada, source, was, "made here", before)
        assert (late["stale"], late["steps"], len(late["lacks"])) == (True, [], 1)


def test_what_has_no_form_is_said(place: Desk) -> None:
    ada = place.visitor("ada")
    view = ada.get("data/form?source=lite&table=big_orders")
    assert (view.status_code, view.json()["error"]) == (400, "engine.unsupported")
    missing = ada.get("data/form?source=lite&table=none")
    assert missing.status_code == 404
    form = form_of(ada, "lite", "orders")
    assert form["lacks"]["column.type"].startswith("SQLite")
    was = form_of(ada, "lite", "orders")["form"]
    form["form"]["columns"][3]["type"] = "TEXT"
    plan = plan_of(ada, "lite", form["form"], "orders", was)
    assert (plan["steps"], len(plan["lacks"])) == ([], 1)
    two = {
        **form["form"],
        "name": "x",
        "columns": [{"name": "a", "type": "TEXT); DROP TABLE x; --"}],
    }
    two |= {"primary_key": [], "foreign_keys": [], "indexes": []}
    (step,) = plan_of(ada, "lite", two)["steps"]
    assert step["verdict"] == "deny"


def test_a_form_says_before_that_a_mask_lets_no_table_be_made(place: Desk) -> None:
    ada = place.visitor("ada")
    consent = ("--passphrase-file", str(place.directory / "consent"))
    words = ["source", "update", "lite", "--mask", "customers.email=nothing", *consent]
    assert place.run(*words).status == 0
    columns = [{"name": "id", "type": "INTEGER"}]
    form = {**form_of(ada, "lite")["form"], "name": "late", "columns": columns}

    def is_said() -> bool:
        (step,) = plan_of(ada, "lite", form)["steps"]
        return step["verdict"] == "deny" and "hidden" in step["why"]

    wait_until(is_said, "the refusal")
