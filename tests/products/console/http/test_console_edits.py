"""Edits of rows over HTTP: what can be edited, what is staged, shown, submitted, and refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving
from support.console_visitor import Visitor
from support.data_desk import PASSPHRASE, Desk, answer, desk, ended_run
from support.eventually import wait_until

SQLITE = """
CREATE TABLE pets (id INTEGER PRIMARY KEY, name VARCHAR(20) DEFAULT 'rex', kind,
  owner INTEGER REFERENCES customers (id), up TEXT AS (upper(name)));
INSERT INTO pets (id, name, kind, owner) VALUES (1, 'ada', 5, 1), (2, 'bo', '5', NULL),
  (3, NULL, x'00ff', 2);
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    hides = {"lite": ("--filter", "orders: id < 3")}
    with desk(tmp_path_factory.mktemp("edits"), ("lite",), flags=hides) as found:
        ask(found, SQLITE)
        yield found


def ask(place: Desk, text: str) -> list[tuple[Any, ...]]:
    """The shop's own answer, around the gate."""
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection, connection:
        if text.count(";") > 1:
            connection.executescript(text)
            return []
        return connection.execute(text).fetchall()


def pets_tab(visitor: Visitor, table: str = "pets") -> str:
    body = {"source": "lite", "kind": "table", "table": table}
    tab: str = answer(visitor.post("data/tabs", body))["id"]
    staged = answer(visitor.get(f"data/tabs/{tab}/edits"))
    answer(visitor.post(f"data/tabs/{tab}/edits", {"version": staged["version"], "clear": True}))
    return tab


def version_of(visitor: Visitor, tab: str) -> int:
    version: int = answer(visitor.get(f"data/tabs/{tab}/edits"))["version"]
    return version


def put(visitor: Visitor, tab: str, *edits: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"version": version_of(visitor, tab), "put": list(edits), **fields}
    found: dict[str, Any] = answer(visitor.post(f"data/tabs/{tab}/edits", body))
    return found


def grid(visitor: Visitor, table: str = "pets") -> dict[str, Any]:
    found: dict[str, Any] = answer(visitor.post("data/rows", {"source": "lite", "table": table}))
    return found


def submitted(visitor: Visitor, tab: str, **fields: Any) -> dict[str, Any]:
    """A submission that has ended."""
    body = {"version": version_of(visitor, tab), **fields}
    answer(visitor.post(f"data/tabs/{tab}/edits/submit", body))

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = answer(visitor.get(f"data/tabs/{tab}/edits/result"))
        return found if found["ended_at"] is not None else None

    found = wait_until(look, "the end of the submission")
    assert found is not None
    return found


def test_what_can_be_edited_is_said_with_the_reason(place: Desk) -> None:
    ada, vera = place.visitor("ada"), place.visitor("vera")
    found = answer(ada.get("data/edits/columns?source=lite&table=pets"))
    assert found["editable"] and found["key"] == ["id"] and not found["asks"]
    columns = {each["name"]: each for each in found["columns"]}
    assert columns["owner"]["references"]["table"] == "customers"
    assert columns["name"]["has_default"] and columns["name"]["length"] == 20
    assert not columns["up"]["editable"] and columns["up"]["reason"]
    assert columns["kind"]["classes"] == ["integer", "real", "text", "blob"]
    for name, table, word in (
        (vera, "pets", "scope readWrite"),
        (ada, "keyless", "primary key"),
        (ada, "big_orders", "view"),
    ):
        found = answer(name.get(f"data/edits/columns?source=lite&table={table}"))
        assert not found["editable"] and word in found["reason"], found
    masked = answer(ada.get("data/edits/columns?source=lite&table=customers"))
    assert masked["editable"]
    # Orders that are hidden may refer to a customer: its key stays, and a new one gets any key.
    fixed = {each["name"]: each["insertable"] for each in masked["columns"] if not each["editable"]}
    assert fixed == {"id": True, "email": False} and set(masked["refused"]) == {"delete"}
    tab = pets_tab(ada, "customers")
    cells = {"id": {"text": "9"}, "name": {"text": "Mia"}}
    key = {"id": "k", "kind": "update", "key": ["1"], "cells": {"id": {"text": "8"}}}
    found = put(ada, tab, {"id": "n", "kind": "insert", "cells": cells}, key)
    assert [(each["id"], each["column"]) for each in found["problems"]] == [("k", "id")]
    assert submitted(ada, tab)["state"] == "done"
    assert ask(place, "SELECT name FROM customers WHERE id = 9") == [("Mia",)]
    ask(place, "DELETE FROM customers WHERE id = 9")


def test_edits_are_staged_shown_submitted_and_taken_back(place: Desk) -> None:
    ada = place.visitor("ada")
    tab, rows = pets_tab(ada), grid(ada)
    names = [each["name"] for each in rows["columns"]]
    before = ask(place, "SELECT * FROM pets")
    found = put(
        ada,
        tab,
        {"id": "r1", "kind": "insert", "cells": {"name": {"text": ""}, "kind": None}},
        {
            "id": "r2",
            "kind": "update",
            "key": rows["keys"][0],
            "seen": rows["rows"][0],
            "cells": {"name": None, "kind": {"text": "6"}},
        },
        {"id": "r3", "kind": "delete", "key": rows["keys"][1], "seen": rows["rows"][1]},
        columns=names,
    )
    assert not found["problems"] and found["counts"] == {"insert": 1, "update": 1, "delete": 1}
    row = found["rows"][1]
    assert row["before"]["kind"] == {"text": "5", "class": "integer"}
    # Another page, and another session of the same person, finds them.
    again = place.visitor("ada")
    listed = answer(again.get(f"data/tabs/{tab}/edits"))
    assert [each["id"] for each in listed["rows"]] == ["r1", "r2", "r3"]
    text = answer(again.get(f"data/tabs/{tab}/edits/sql"))
    assert text["statements"] == text["shown"] == 3 and text["verdict"] == "allow"
    assert text["text"].splitlines()[0].startswith("DELETE FROM")
    assert ask(place, "SELECT * FROM pets") == before
    done = submitted(again, tab)
    assert done["state"] == "done", done
    assert [each["id"] for each in done["rows"]] == ["r1", "r2", "r3"]
    assert done["columns"] == names
    assert done["rows"][0]["row"][:3] == ["4", "", None] and done["rows"][0]["key"] == ["4"]
    assert done["rows"][2]["row"] is None
    assert ask(place, "SELECT id, name, kind FROM pets WHERE id <> 3") == [
        (1, None, 6),
        (4, "", None),
    ]
    staged = answer(ada.get(f"data/tabs/{tab}/edits"))
    assert staged["rows"] == [] and staged["result"]["id"] == done["id"]
    ask(place, "DELETE FROM pets WHERE id = 4")
    ask(place, "UPDATE pets SET name = 'ada', kind = 5 WHERE id = 1")
    ask(place, "INSERT INTO pets (id, name, kind) VALUES (2, 'bo', '5')")


def test_a_row_that_is_another_one_than_the_page_shows_is_not_staged(place: Desk) -> None:
    ada = place.visitor("ada")
    tab, rows = pets_tab(ada), grid(ada)
    names = [each["name"] for each in rows["columns"]]
    ask(place, "UPDATE pets SET name = 'new' WHERE id = 1")
    edit = {"id": "r1", "kind": "update", "key": ["1"], "seen": rows["rows"][0], "cells": {}}
    gone = {"id": "r2", "kind": "delete", "key": ["77"]}
    found = put(ada, tab, edit, gone, columns=names)
    assert [(each["id"], each["problem"]) for each in found["problems"]] == [
        ("r1", "changed"),
        ("r2", "gone"),
    ]
    assert found["problems"][0]["now"]["name"] == {"text": "new", "class": "text"}
    assert found["rows"] == []
    ask(place, "UPDATE pets SET name = 'ada' WHERE id = 1")


def test_a_conflict_shows_yours_theirs_and_before_and_writes_nothing(place: Desk) -> None:
    ada = place.visitor("ada")
    tab = pets_tab(ada)
    put(
        ada,
        tab,
        {"id": "a", "kind": "update", "key": ["1"], "cells": {"name": {"text": "mine"}}},
        {"id": "b", "kind": "delete", "key": ["3"]},
    )
    ask(place, "UPDATE pets SET name = 'theirs', kind = '5' WHERE id = 1")
    before = ask(place, "SELECT * FROM pets")
    done = submitted(ada, tab)
    assert (done["state"], done["code"], done["conflict_count"]) == ("conflict", "rows.conflict", 1)
    (conflict,) = done["conflicts"]
    assert (conflict["id"], conflict["problem"]) == ("a", "changed")
    assert conflict["columns"] == [
        {
            "name": "name",
            "before": {"text": "ada", "class": "text"},
            "theirs": {"text": "theirs", "class": "text"},
            "yours": {"text": "mine"},
        },
        {
            "name": "kind",
            "before": {"text": "5", "class": "integer"},
            "theirs": {"text": "5", "class": "text"},
            "yours": {"text": "5", "class": "integer"},
        },
    ]
    assert ask(place, "SELECT * FROM pets") == before
    assert answer(ada.get(f"data/tabs/{tab}/edits"))["counts"]["update"] == 1
    ask(place, "UPDATE pets SET name = 'ada', kind = 5 WHERE id = 1")
    assert submitted(ada, tab)["state"] == "done"
    ask(place, "INSERT INTO pets (id, kind, owner) VALUES (3, x'00ff', 2)")
    ask(place, "UPDATE pets SET name = 'ada' WHERE id = 1")


def test_two_pages_do_not_overwrite_each_other(place: Desk) -> None:
    ada = place.visitor("ada")
    tab = pets_tab(ada)
    version = version_of(ada, tab)
    body = {"version": version, "put": [{"id": "x", "kind": "insert", "cells": {}}]}
    answer(ada.post(f"data/tabs/{tab}/edits", body))
    response = ada.post(f"data/tabs/{tab}/edits", body)
    assert response.status_code == 409
    assert response.json()["error"] == "tab.changed" and response.json()["rows"]
    response = ada.post(f"data/tabs/{tab}/edits/submit", {"version": version})
    assert response.status_code == 409


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ({"id": {"text": "x", "class": "integer"}}, "id"),
        ({"kind": {"hex": "0"}}, "kind"),
        ({"up": {"text": "A"}}, "up"),
        ({"none": {"text": "A"}}, "none"),
        ({"name": {"text": "a", "default": True}}, "name"),
        ({"name": {}}, "name"),
    ],
)
def test_what_is_no_value_is_told_by_its_column(
    place: Desk, cells: dict[str, Any], column: str
) -> None:
    ada = place.visitor("ada")
    tab = pets_tab(ada)
    whole = {"owner": {"text": "1"}, **cells}
    found = put(ada, tab, {"id": "r", "kind": "insert", "cells": whole})
    (problem,) = found["problems"]
    assert (problem["problem"], problem["column"]) == ("invalid", column)
    assert list(found["rows"][0]["cells"]) == ["owner"]


def test_true_and_false_are_what_the_database_has_for_them(place: Desk) -> None:
    ask(place, "CREATE TABLE flags (id INTEGER PRIMARY KEY, f BOOLEAN, v)")
    ask(place, "INSERT INTO flags VALUES (1, 1, 1), (2, NULL, 'x'), (3, 'true', NULL)")
    ada = place.visitor("ada")
    tab = pets_tab(ada, "flags")
    word = {"text": "false"}
    edits = [
        {"id": f"r{n}", "kind": "update", "key": [str(n)], "cells": {"f": word}} for n in (1, 2, 3)
    ]
    new = {"id": "n", "kind": "insert", "cells": {"id": {"text": "4"}, "f": {"text": "True"}}}
    assert not put(ada, tab, *edits, new)["problems"]
    assert submitted(ada, tab)["state"] == "done"
    # A text keeps its class; the word is no condition that holds, whatever it says.
    assert ask(place, "SELECT f FROM flags ORDER BY id") == [(0,), (0,), ("false",), (1,)]
    # A trigger puts back what is written: that nothing came of it is said.
    ask(
        place,
        "CREATE TRIGGER back AFTER UPDATE OF v ON flags BEGIN"
        " UPDATE flags SET v = OLD.v WHERE id = OLD.id; END",
    )
    put(ada, tab, {"id": "a", "kind": "update", "key": ["1"], "cells": {"v": {"text": "2"}}})
    done = submitted(ada, tab)
    assert done["state"] == "done" and done["rows"][0]["row"] == ["1", "0", "1"]
    assert [each for each in done["notes"] if "1 row is stored as before" in each], done["notes"]


def test_a_row_whose_key_is_null_is_not_named_by_another(place: Desk) -> None:
    ada = place.visitor("ada")
    found = grid(ada, "loose")
    assert found["keys"] == [[], [], [], ["a"], ["b"], ["c"]]
    (warning,) = found["warnings"]
    assert "may be NULL" in warning


def test_a_result_with_the_key_of_its_table_is_edited_too(place: Desk) -> None:
    ada = place.visitor("ada")
    tab = answer(ada.post("data/tabs", {"source": "lite", "kind": "query"}))["id"]
    text = "SELECT name AS n, id, upper(name) FROM pets WHERE id < 3 ORDER BY id"
    run = answer(ada.post("data/runs", {"source": "lite", "statement": text, "tab": tab}))
    assert ended_run(ada, run["id"])["state"] == "done"
    found = answer(ada.get(f"data/runs/{run['id']}/edits"))
    assert found["editable"]
    assert found["result"] == [{"column": "name"}, {"column": "id"}, {"column": None}]
    rows = answer(ada.get(f"data/runs/{run['id']}/rows"))["rows"]
    edit = {
        "id": "r",
        "kind": "update",
        "key": [rows[1][1]],
        "seen": rows[1][:2],
        "cells": {"name": {"text": "bob"}},
    }
    table = {"table": "pets", "schema": found["table"]["schema"]}
    staged = put(ada, tab, edit, columns=["name", "id"], table=table)
    assert not staged["problems"]
    assert submitted(ada, tab)["state"] == "done"
    assert ask(place, "SELECT name FROM pets WHERE id = 2") == [("bob",)]
    ask(place, "UPDATE pets SET name = 'bo' WHERE id = 2")
    for text, word in (
        ("SELECT name FROM pets", "key"),
        ("SELECT p.id FROM pets p, orders", "one table"),
        ("SELECT id FROM big_orders", "view"),
    ):
        run = answer(ada.post("data/runs", {"source": "lite", "statement": text}))
        ended_run(ada, run["id"])
        found = answer(ada.get(f"data/runs/{run['id']}/edits"))
        assert not found["editable"] and word in found["reason"], found


def test_masked_values_are_never_shown(place: Desk) -> None:
    ada = place.visitor("ada")
    tab, rows = pets_tab(ada, "customers"), grid(ada, "customers")
    names = [each["name"] for each in rows["columns"]]
    edit = {
        "id": "r",
        "kind": "update",
        "key": ["1"],
        "seen": rows["rows"][0],
        "cells": {"city": {"text": "Paris"}},
    }
    found = put(ada, tab, edit, columns=names)
    assert not found["problems"] and "email" not in found["rows"][0]["before"]
    ask(place, "UPDATE customers SET city = 'Rome', email = 'secret@example.org' WHERE id = 1")
    done = submitted(ada, tab)
    assert done["state"] == "conflict"
    assert "example.org" not in repr(done) and "example.org" not in repr(found)
    ask(place, "UPDATE customers SET city = 'London', email = 'ada@example.org' WHERE id = 1")
    done = submitted(ada, tab)
    assert done["state"] == "done" and "example.org" not in repr(done)
    assert ask(place, "SELECT city, email FROM customers WHERE id = 1") == [
        ("Paris", "ada@example.org")
    ]


def test_staged_rows_are_sealed_in_the_state(place: Desk) -> None:
    ada = place.visitor("ada")
    tab = pets_tab(ada)
    put(ada, tab, {"id": "r", "kind": "insert", "cells": {"name": {"text": "unmistakable"}}})
    found = b"".join(each.read_bytes() for each in place.state.glob("*") if each.is_file())
    assert b"unmistakable" not in found


def test_an_approved_change_is_made_once_a_person_has_said_yes(tmp_path: Path) -> None:
    with desk(tmp_path, ("lite",), flags={"lite": ("--approval-for", "writes")}) as place:
        ask(place, SQLITE)
        ada = place.visitor("ada")
        tab = pets_tab(ada)
        cells = {"name": {"text": "new"}}
        put(ada, tab, {"id": "a", "kind": "update", "key": ["1"], "cells": cells})
        assert answer(ada.get(f"data/tabs/{tab}/edits/sql"))["verdict"] == "ask"
        body = {"version": version_of(ada, tab), "reason": "a new name"}
        answer(ada.post(f"data/tabs/{tab}/edits/submit", body))

        def result(state: str) -> dict[str, Any] | None:
            found: dict[str, Any] = answer(ada.get(f"data/tabs/{tab}/edits/result"))
            return found if found["state"] == state else None

        asking = wait_until(lambda: result("asking"), "the question")
        assert asking is not None and asking["approval"]
        assert ask(place, "SELECT name FROM pets WHERE id = 1") == [("ada",)]
        body = {"version": version_of(ada, tab), "put": [{"id": "a", "kind": "delete"}]}
        refused = ada.post(f"data/tabs/{tab}/edits", body)
        assert refused.status_code == 429 and "being made" in refused.text
        pru = place.visitor("pru")
        (card,) = pru.get("inbox").json()["pending"]
        assert card["id"] == asking["approval"]
        assert "UPDATE" in str(card["statement"]) and "new" in str(card["dry_run"])
        yes = {"digest": card["digest"], "passphrase": PASSPHRASE}
        assert pru.post(f"inbox/{card['id']}/allow", yes).status_code == 200
        assert wait_until(lambda: result("done"), "the change")
        assert ask(place, "SELECT name FROM pets WHERE id = 1") == [("new",)]

        edit = {"id": "b", "kind": "insert", "cells": {"name": {"text": "once"}}}
        put(ada, tab, edit)
        answer(ada.post(f"data/tabs/{tab}/edits/submit", {"version": version_of(ada, tab)}))
        assert wait_until(lambda: result("asking"), "the question")
        place.server.process.kill()
        words = ["serve", "--http", place.address.removeprefix("http://"), "--console"]
        with serving(words, place.state) as again:
            again.until("the console is at")
            ada = place.visitor("ada")
            listed = answer(ada.get(f"data/tabs/{tab}/edits"))
            assert [each["id"] for each in listed["rows"]] == ["b"]
            assert listed["result"]["state"] == "unknown" and "not known" in repr(listed["result"])
            answer(
                ada.post(f"data/tabs/{tab}/edits", {"version": listed["version"], "clear": True})
            )
            assert answer(ada.get(f"data/tabs/{tab}/edits"))["result"] is None


def test_a_mask_that_is_set_later_hides_what_was_staged_and_stored_before(place: Desk) -> None:
    ada = place.visitor("ada")
    ask(place, "INSERT INTO customers VALUES (7, 'Grace', 'g@example.org', 'hidden soon')")
    tab, rows = pets_tab(ada, "customers"), grid(ada, "customers")
    edit = {"id": "m", "kind": "update", "key": ["7"], "cells": {"name": {"text": "Hopper"}}}
    put(ada, tab, {**edit, "seen": rows["rows"][-1]}, columns=[c["name"] for c in rows["columns"]])
    assert submitted(ada, tab)["rows"][0]["row"][-1] == "hidden soon"
    put(ada, tab, {**edit, "cells": {"name": {"text": "G."}, "city": {"text": "hidden soon"}}})

    def replies() -> str:
        again = put(ada, tab, {**edit, "cells": {"name": {"text": "G. H."}}})
        old = ada.post(f"data/tabs/{tab}/edits", {"version": 0})
        assert old.status_code == 409
        found = [ada.get(f"data/tabs/{tab}/{each}") for each in ("edits", "edits/sql")]
        return f"{again}{old.text}{found[0].text}{found[1].text}"

    def masked(*masks: str) -> None:
        """Set the masks, and wait until the server follows."""
        words = [word for each in masks for word in ("--mask", f"customers.{each}")]
        changed = place.run("source", "update", "lite", *words, *consent)
        assert changed.status == 0, changed.err
        hides = "city=nothing" in masks
        wait_until(
            lambda: ("hidden soon" not in str(grid(ada, "customers"))) == hides or None, "the mask"
        )

    consent = ["--passphrase-file", str(place.directory / "consent")]
    assert "hidden soon" in replies()
    try:
        masked("email=nothing", "city=nothing")
        assert "hidden soon" not in replies()
        assert len(answer(ada.get(f"data/tabs/{tab}/edits"))["rows"]) == 1
        assert answer(ada.get(f"data/tabs/{tab}/edits/result"))["rows"] == []
        masked("id=hash")
        assert answer(ada.get(f"data/tabs/{tab}/edits"))["rows"] == []
    finally:
        masked("email=nothing")
