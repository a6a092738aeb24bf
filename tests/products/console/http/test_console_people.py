"""Rules on data hold for the people of the console, too: masks and filters that name operators and
roles hide rows of questions and of changes, statements, and what is live."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from products.console.support.console_place import Place, query
from support.console_visitor import Visitor

SEEN = "UPDATE towns SET mayor = 'Sova' WHERE mayor = 'Neumann'"
"""A change that touches no masked column."""
HIDES_NAMES = '[[masks]]\ncolumn = "towns.name"\nroles = ["approver"]\n'


@pytest.fixture
def mayors(place: Place) -> Place:
    """The place with towns that have a mayor, two more operators, and changes that are kept."""
    with closing(sqlite3.connect(place.directory / "towns.db")) as connection, connection:
        connection.execute("ALTER TABLE towns ADD COLUMN mayor TEXT")
        connection.execute("UPDATE towns SET mayor = 'Neumann' WHERE id = 2")
    words = ["source", "update", "towns", "--undo", "keep"]
    words += ["--passphrase-file", str(place.directory / "consent")]
    assert place.run(*words).status == 0
    place.add_operator("eve", "--role", "approver")
    place.add_operator("bob", "--role", "viewer")
    return place


def rule(place: Place, text: str) -> None:
    """Give the server this rule: it holds from the next request."""
    place.settings(text)


def asked(place: Place, token: str, sql: str, reader: Visitor) -> dict[str, Any]:
    """The question that a change leaves, as the reader is shown it."""
    query(place.agent(token), sql)
    return reader.get("inbox").json()["pending"][-1]


def test_masked_columns_of_a_dry_run_are_hidden_from_the_roles_that_the_mask_names(
    mayors: Place, token: str
) -> None:
    rule(mayors, HIDES_NAMES)
    ada, eve = mayors.visitor(), mayors.visitor("eve")
    card = asked(mayors, token, SEEN, eve)
    assert card["dry_run"]["masked"] == ["name"]
    assert card["dry_run"]["before"] == [["2", None, "Neumann"]]
    assert card["dry_run"]["after"] == [["2", None, "Sova"]]
    assert "Lemberg" not in eve.get("inbox").text + eve.get(f"inbox/{card['id']}").text
    whole = ada.get(f"inbox/{card['id']}").json()["dry_run"]
    assert (whole["masked"], whole["before"]) == ([], [["2", "Lemberg", "Neumann"]])
    # She answers all the same: the statement and the number of rows are hers to judge.
    assert "Sova" in json.dumps(card["statement"]) and "change 1 row" in card["sentence"]
    answer = eve.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    assert answer.status_code == 200 and "Lemberg" not in answer.text


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE towns SET mayor = name WHERE id = 2",
        "INSERT INTO towns (id, mayor) SELECT 9, name FROM towns WHERE id = 2",
        "INSERT INTO twins (id, twin) SELECT 9, name FROM towns WHERE id = 2",
        "INSERT INTO twins (id, twin) SELECT 9, called FROM names WHERE id = 2",
        "DELETE FROM towns WHERE name = 'Lemberg'",
    ],
)
def test_no_rows_are_shown_of_a_change_that_copies_what_is_masked(
    mayors: Place, token: str, sql: str
) -> None:
    with closing(sqlite3.connect(mayors.directory / "towns.db")) as connection, connection:
        connection.execute("CREATE TABLE twins (id INTEGER PRIMARY KEY, twin TEXT)")
        connection.execute("CREATE VIEW names AS SELECT id, name AS called FROM towns")
    rule(mayors, HIDES_NAMES)
    ada, eve = mayors.visitor(), mayors.visitor("eve")
    card = asked(mayors, token, sql, eve)
    assert card["dry_run"] is None and "hidden from you" in card["dry_run_hidden"]
    whole = ada.get(f"inbox/{card['id']}").json()
    assert "Lemberg" in json.dumps(whole["dry_run"]) and not whole["dry_run_hidden"]


def test_no_rows_are_shown_where_a_filter_hides_rows_of_the_table(
    mayors: Place, token: str
) -> None:
    rule(mayors, '[[filters]]\ntable = "towns"\nwhere = "id = 1"\noperators = ["EVE"]\n')
    eve = mayors.visitor("eve")
    card = asked(mayors, token, SEEN, eve)
    assert card["dry_run"] is None and card["dry_run_hidden"]
    whole = mayors.visitor().get(f"inbox/{card['id']}").json()
    assert whole["dry_run"]["before"] == [["2", "Lemberg", "Neumann"]]


def test_a_mask_that_comes_later_hides_the_rows_of_questions_that_are_kept(
    mayors: Place, token: str
) -> None:
    eve = mayors.visitor("eve")
    card = asked(mayors, token, "UPDATE towns SET mayor = name WHERE id = 2", eve)
    assert "Lemberg" in json.dumps(card["dry_run"])
    rule(mayors, HIDES_NAMES)
    assert "Lemberg" not in eve.get("inbox").text
    assert eve.get(f"inbox/{card['id']}").json()["dry_run_hidden"]


def test_rows_of_a_source_that_was_removed_are_shown_to_no_operator(
    mayors: Place, token: str
) -> None:
    ada = mayors.visitor()
    card = asked(mayors, token, SEEN, ada)
    assert "Lemberg" in json.dumps(card["dry_run"])
    assert mayors.run("source", "remove", "towns").status == 0
    card = ada.get(f"inbox/{card['id']}").json()
    assert card["dry_run"] is None and "removed" in card["dry_run_hidden"]


def test_while_the_settings_cannot_be_read_what_waits_is_seen_without_rows_and_denied(
    mayors: Place, token: str
) -> None:
    ada = mayors.visitor()
    card = asked(mayors, token, SEEN, ada)
    rule(mayors, "nonsense = [")
    shown = ada.get("inbox").json()["pending"][0]
    assert shown["dry_run"] is None and shown["dry_run_hidden"]
    assert "Sova" in json.dumps(shown["statement"])
    assert mayors.visitor().resume().status_code == 200
    denied = ada.post(f"inbox/{card['id']}/deny", {"digest": card["digest"], "reason": "no"})
    assert denied.json()["state"] == "denied"
    rule(mayors, "# no rules\n")
    assert "approval.declined" in query(mayors.agent(token), SEEN).text


def test_rows_that_are_put_back_show_no_masked_column_to_those_whom_it_binds(
    mayors: Place, token: str
) -> None:
    rule(mayors, HIDES_NAMES)
    ada, eve = mayors.visitor(), mayors.visitor("eve")
    card = asked(mayors, token, SEEN, eve)
    eve.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    query(mayors.agent(token), SEEN)
    change = eve.get(f"inbox/{card['id']}").json()["run"]["change_id"]
    preview = eve.get(f"changes/{change}")
    assert "Lemberg" not in preview.text and preview.json()["tables"][0]["masked"] == ["name"]
    assert "Lemberg" in ada.get(f"changes/{change}").text
    assert eve.post(f"changes/{change}/undo").status_code == 403  # another operator must say yes
    assert "Lemberg" not in eve.get("inbox").text
    (question,) = ada.get("inbox").json()["pending"]
    ada.post(f"inbox/{question['id']}/allow", {"digest": question["digest"]})
    done = eve.post(f"changes/{change}/undo")
    assert done.status_code == 200, done.text
    with closing(sqlite3.connect(mayors.directory / "towns.db")) as connection:
        assert connection.execute("SELECT * FROM towns WHERE id = 2").fetchall() == [
            (2, "Lemberg", "Neumann")
        ]


def test_a_viewer_reads_no_statements_where_a_mask_binds_viewers(mayors: Place, token: str) -> None:
    rule(mayors, '[[masks]]\ncolumn = "towns.name"\nroles = ["viewer"]\n')
    bob = mayors.visitor("bob")
    card = asked(mayors, token, "UPDATE towns SET name = 'Lviv' WHERE id = 2", bob)
    assert "Lviv" not in bob.get("inbox").text + bob.get("activity").text
    assert bob.get("activity?q=Lviv").json()["counts"]["total"] == 0
    assert "Lviv" in mayors.visitor("eve").get(f"inbox/{card['id']}").text


@pytest.mark.parametrize(
    "whom", ['tokens = ["claude"]', 'except_roles = ["viewer"]', 'operators = ["eve"]']
)
def test_a_viewer_reads_statements_where_the_mask_binds_others_alone(
    mayors: Place, token: str, whom: str
) -> None:
    rule(mayors, f'[[masks]]\ncolumn = "towns.mayor"\n{whom}\n')
    bob = mayors.visitor("bob")
    query(mayors.agent(token), "SELECT id FROM towns WHERE name = 'Lemberg'")
    assert "Lemberg" in bob.get("activity").text
    assert bob.get("activity?q=Lemberg").json()["counts"]["total"] == 1


def test_a_mask_for_tokens_binds_and_excepts_no_operator_of_the_same_name(
    mayors: Place, token: str
) -> None:
    rule(mayors, '[[masks]]\ncolumn = "towns.name"\nexcept_tokens = ["bob", "eve"]\n')
    eve = mayors.visitor("eve")
    card = asked(mayors, token, "UPDATE towns SET mayor = 'Sova' WHERE id = 2", eve)
    assert card["dry_run"]["masked"] == ["name"]
    assert "Lemberg" not in eve.get("inbox").text
