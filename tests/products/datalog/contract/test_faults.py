"""Faults under way: a process that is killed, a disk that is full, too much asked at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.datalog.contract.test_surface_session import Client
from support.datalog import NEVER, Datalog, Opened
from support.surface_client import OWNER, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.model.statements import Effect
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

MANY = 10_000
DISK_MB = 24

HOLDS = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def killed_in(
    people: Opened, datalog: Datalog, request: DatalogRequest, delay: float
) -> Code | None:
    """Kill the worker some time after a change was sent; the error of the change, if it has one."""

    async def run() -> Code | None:
        change = asyncio.ensure_future(
            people.engine.run(people.permit(request, Effect.WRITE), NEVER)
        )
        await asyncio.sleep(delay)
        os.kill(people.engine._worker.pid, signal.SIGKILL)
        try:
            await change
        except TidegateError as error:
            return error.code
        return None

    return datalog.run(run())


@pytest.mark.parametrize("delay", [0.005, 0.08, 0.4])
def test_a_change_whose_process_is_killed_is_whole_or_absent(
    people: Opened, datalog: Datalog, delay: float
) -> None:
    people.ask("kv_transact", "kv", create=True, dbi="bulk", txs=[[":put", -1, "first"]])
    facts = DatalogRequest(
        operation=DatalogOperation.TRANSACT,
        target=DatalogTarget("database"),
        arguments={"txData": [{":n": n} for n in range(MANY)]},
    )
    keys = DatalogRequest(
        operation=DatalogOperation.KV_TRANSACT,
        target=DatalogTarget("kv"),
        arguments={"dbi": "bulk", "txs": [[":put", n, f"value {n}"] for n in range(MANY)]},
    )
    for request in (facts, keys):
        error = killed_in(people, datalog, request, delay)
        count = people.ask("count_datoms", a=":n")
        people.ask("kv_range", "kv", dbi="bulk", keyRange=[":all"], limit=2 * MANY)
        found = count if request is facts else (people.last_items or 0) - 1
        assert error in (None, Code.SQL_OUTCOME)
        assert found == MANY or (error is not None and found == 0)
    assert people.query("[:find (count ?e) . :where [?e :name]]") == 4
    people.ask("transact", txData=[{":n": -1}])
    assert people.ask("count_datoms", a=":n") == count + 1


def test_vectors_of_a_transaction_are_found_after_their_process_was_killed(
    datalog: Datalog, tmp_path: Path
) -> None:
    near = datalog.open(tmp_path / "near", "write")
    schema = {":at": {":db/valueType": ":db.type/vec"}}
    options = {":vector-opts": {":dimensions": 2}}
    near.ask("open_database", create=True, schema=schema, options=options)
    for n in range(2):
        near.ask("transact", txData=[{":n": n, ":at": [n, 1]}])
        os.kill(near.engine._worker.pid, signal.SIGKILL)
        text = (
            "[:find [?n ...] :where [(vec-neighbors $ :at [0.0 1.0] {:top 9}) [[?e]]] [?e :n ?n]]"
        )
        assert sorted(near.query(text)) == list(range(n + 1))


def test_a_change_is_refused_while_another_gate_changes_the_directory(
    people: Opened, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path / "people")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        error = people.refused("transact", txData=[{":n": 1}])
        assert error.code is Code.SOURCE_LOCKED
        assert "Tidegate" in error.message
        assert people.ask("count_datoms", a=":n") == 0  # reads go on
        other.communicate("")
    people.ask("transact", txData=[{":n": 1}])
    assert people.ask("count_datoms", a=":n") == 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "none", mounted],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("only root may mount a disk here")
    yield mounted
    subprocess.run(["umount", "-l", mounted], check=True)


def test_a_change_on_a_full_disk_is_refused_and_leaves_the_database_as_it_was(
    datalog: Datalog, disk: Path
) -> None:
    people = datalog.make(disk / "people")
    people.ask("kv_transact", "kv", create=True, dbi="a", txs=[[":put", 1, "one"]])
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free
    filler.write_bytes(bytes(max(0, free - 262_144)))
    big = [{":n": n, ":text": f"{n:0200}"} for n in range(MANY)]
    error = people.refused("transact", txData=big)
    assert error.code in (Code.SQL_FAILED, Code.SQL_OUTCOME), error
    assert people.ask("count_datoms", a=":n") == 0
    assert people.query("[:find (count ?e) . :where [?e :name]]") == 4
    assert people.ask("kv_get", "kv", dbi="a", key=1) == "one"
    filler.unlink()
    people.ask("transact", txData=[{":n": 1}])
    assert people.ask("count_datoms", a=":n") == 1


def test_a_huge_result_is_counted_and_cut_and_one_without_bounds_ends_in_an_error(
    people: Opened,
) -> None:
    people.ask("transact", txData=[{":n": n} for n in range(500)])
    shown = people.query("[:find ?a ?b :where [_ :n ?a] [_ :n ?b]]")
    assert (len(shown), people.last_items) == (200, 250_000)
    assert shown == [[0, n] for n in range(200)]
    text = "x" * 3_000_000
    people.ask("transact", txData=[{":name": "big", ":bio": text}])
    assert people.ask("pull", selector=[":bio"], eid=[":name", "big"]) == {":bio": text}
    limits = Limits(max_bytes=1_000_000)
    error = people.refused("pull", selector=[":bio"], eid=[":name", "big"], limits=limits)
    assert error.code is Code.LIMIT_BYTES
    pairs = "[:find ?a ?b ?c ?d :where [_ :n ?a] [_ :n ?b] [_ :n ?c] [_ :n ?d]]"
    error = people.refused("query", query=pairs, limits=Limits(timeout_s=3))
    assert error.code in (Code.LIMIT_TIME, Code.LIMIT_BYTES)
    assert people.ask("count_datoms", a=":n") == 500


RUNAWAYS: dict[str, tuple[str, list[Any], Code]] = {
    "a pattern that tries every split": (
        '[:find ?x :in $ ?t :where [?e :name "Ada"] [(re-pattern "(.*,){30}x(.*)*y") ?p]'
        " [(re-find ?p ?t) ?x]]",
        ["a," * 60],
        Code.LIMIT_TIME,
    ),
    "a pattern as deep as its text": (
        '[:find ?x :in $ ?t :where [?e :name "Ada"] [(re-pattern "(a|b)*") ?p]'
        " [(re-find ?p ?t) ?x]]",
        ["ab" * 20_000],
        Code.ARGUMENT_INVALID,
    ),
    "a range that fills the memory": (
        '[:find (count ?x) . :where [?e :name "Ada"] [(range 100000000) [?x ...]]]',
        [],
        Code.LIMIT_BYTES,
    ),
    "a rule that makes values": (
        "[:find (max ?x) . :in $ % :where (n ?x)]",
        [{"~edn": "[[(n ?x) [(ground 0) ?x]] [(n ?x) (n ?y) [(inc ?y) ?x]]]"}],
        Code.LIMIT_TIME,
    ),
}


@pytest.mark.parametrize("name", RUNAWAYS)
def test_a_query_that_computes_without_end_is_an_error_and_costs_no_other_source(
    datalog: Datalog, people: Opened, tmp_path: Path, name: str
) -> None:
    other = datalog.make(tmp_path / "other")
    text, inputs, expected = RUNAWAYS[name]
    error = people.refused("query", query=text, inputs=inputs, limits=Limits(timeout_s=2))
    # Under load the memory may not be full before the time is over.
    assert error.code in (expected, Code.LIMIT_TIME)
    assert "\n" not in error.message and len(error.message) < 1_000
    for source in (other, people):
        assert source.query("[:find (count ?e) . :where [?e :name]]") == 4


def test_many_sessions_hold_a_bounded_number_of_ids_and_one_process(
    datalog: Datalog, people: Opened, tmp_path: Path
) -> None:
    saved = SourceSettings(name="facts", url=f"datalevin://{tmp_path}/people")
    app = App.open(Config(state=str(tmp_path / "state"), sources=(saved,)))
    try:
        surface = app.surface("datalog")
        peers = [Peer(surface, OWNER, "2025-06-18") for _ in range(200)]
        clients = [Client(datalog, peer) for peer in peers]
        codes: list[str] = []
        for client in clients:
            opened = client.reply("open_database", dir="facts")
            codes.append(opened.get("code", "ok"))
            codes.append(client.reply("open_kv", dir="facts").get("code", "ok"))
        assert codes == ["ok"] * 256 + [":limit-rate"] * 144
        assert people.ask("count_datoms", a=":name") == 4
        for peer in peers:
            peer.session.close()
        late = Client(datalog, Peer(surface, OWNER, "2025-06-18"))
        database = late("open_database", dir="facts")["database"]
        assert late("count_datoms", database=database, a=":name") == 4
    finally:
        datalog.run(app.close())


def test_a_line_of_requests_at_once_is_answered_whole_and_in_one_process(
    datalog: Datalog, people: Opened
) -> None:
    pid = people.engine._worker.pid
    request = DatalogRequest(
        operation=DatalogOperation.QUERY,
        target=DatalogTarget("database"),
        arguments={"query": "[:find ?n . :where [?e :age 30] [?e :name ?n]]", "inputs": []},
    )

    async def run() -> list[Any]:
        permit = people.permit(request)
        return await asyncio.gather(*[people.engine.run(permit, NEVER) for _ in range(300)])

    assert {bytes(each.json) for each in datalog.run(run())} == {b'"Cy"'}
    assert people.engine._worker.pid == pid
