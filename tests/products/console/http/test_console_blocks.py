"""Transactions over several statements for a person, over HTTP: begun, used and ended by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk, ended_run

pytestmark = pytest.mark.needs("duckdb")
COUNT = "SELECT count(*) AS n FROM keyless WHERE b = 'of a block'"
INSERT = "INSERT INTO keyless (a, b) VALUES (1, 'of a block')"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    names = ("lite", "pg", "duck")
    flags = {name: ["--changes", "allow"] for name in names}
    with desk(tmp_path_factory.mktemp("blocks"), names, flags, masks=False) as found:
        yield found


def begin(visitor: Visitor, source: str, **body: Any) -> dict[str, Any]:
    begun: dict[str, Any] = answer(visitor.post("data/blocks", {"source": source, **body}))
    assert begun["idle_s"] > 0
    return begun


def run(visitor: Visitor, source: str, statement: str, block: str = "") -> dict[str, Any]:
    body = {"source": source, "statement": statement, "tab": "t", "transaction": block}
    begun = answer(visitor.post("data/runs", body))
    return ended_run(visitor, begun["id"])


def counted(visitor: Visitor, source: str, block: str = "") -> str:
    done = run(visitor, source, COUNT, block)
    assert done["state"] == "done", done
    rows = answer(visitor.get(f"data/runs/{done['id']}/rows"))["rows"]
    return str(rows[0][0])


def step(visitor: Visitor, source: str, block: str, action: str, name: str = "") -> Any:
    body = {"source": source, "action": action, "name": name}
    return visitor.post(f"data/blocks/{block}", body)


@pytest.mark.parametrize("source", ["lite", "pg"])
def test_what_a_block_changes_is_kept_at_its_commit_alone(place: Desk, source: str) -> None:
    visitor = place.visitor()
    block = begin(visitor, source)["id"]
    assert run(visitor, source, INSERT, block)["state"] == "done"
    assert (counted(visitor, source, block), counted(visitor, source)) == ("1", "0")
    assert answer(step(visitor, source, block, "rollback"))["committed"] is False
    assert counted(visitor, source) == "0"

    block = begin(visitor, source)["id"]
    run(visitor, source, INSERT, block)
    answer(step(visitor, source, block, "savepoint", "here"))
    run(visitor, source, INSERT, block)
    answer(step(visitor, source, block, "rollback to", "here"))
    ended = answer(step(visitor, source, block, "commit"))
    assert (ended["committed"], ended["rows"]) == (True, 1)
    assert counted(visitor, source) == "1"
    gone = step(visitor, source, block, "commit")
    assert gone.status_code == 400 and "transaction" in gone.text


def test_a_failed_block_takes_nothing_but_its_end(place: Desk) -> None:
    visitor = place.visitor()
    block = begin(visitor, "pg")["id"]
    assert run(visitor, "pg", "SELECT 1 / 0", block)["state"] == "failed"
    assert "has failed" in run(visitor, "pg", COUNT, block)["message"]
    assert answer(step(visitor, "pg", block, "commit"))["committed"] is False


def test_a_block_belongs_to_the_operator_who_began_it(place: Desk) -> None:
    ada, pru = place.visitor("ada"), place.visitor("pru")
    block = begin(ada, "lite")["id"]
    assert step(pru, "lite", block, "rollback").status_code == 400
    assert run(pru, "lite", "SELECT 1", block)["state"] == "failed"
    assert answer(step(ada, "lite", block, "rollback"))["open"] is False


def test_a_viewer_reads_in_a_block_and_changes_nothing(place: Desk) -> None:
    vera = place.visitor("vera")
    begun = begin(vera, "pg")
    assert begun["reads_only"]
    assert counted(vera, "pg", begun["id"])
    assert run(vera, "pg", INSERT, begun["id"])["state"] == "failed"
    answer(step(vera, "pg", begun["id"], "rollback"))


def test_a_source_without_blocks_gives_none(place: Desk) -> None:
    refused = place.visitor().post("data/blocks", {"source": "duck"})
    assert refused.status_code == 400
    assert "has no transactions over several statements" in refused.text
