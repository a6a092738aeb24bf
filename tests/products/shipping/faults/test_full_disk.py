"""Disks that fill while calls are made, the one to which the record is shipped and the one with the
record itself: nothing is lost, and who watches sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from products.shipping.faults.test_killed_gate import ask_many
from products.shipping.support.record import first_of_each, ids_of, uids
from support.command_line import serving
from support.eventually import PATIENCE_S, wait_until
from support.small_disk import small_disk
from tidegate.audit.shipped import find_gate_id
from tidegate.audit.verify import verify

pytestmark = pytest.mark.needs("metrics")

CALLS = 40


def figures(port: int) -> dict[str, float]:
    """What Prometheus would read, by name and labels."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")
    }


def test_a_disk_that_fills_loses_nothing_of_the_record_and_is_seen(tmp_path: Path) -> None:
    with small_disk(tmp_path / "gate") as gate, small_disk(tmp_path / "logs") as logs:
        file, record = logs.path / "record.jsonl", gate.state / "audit"
        settings = {
            "auth": False,
            "metrics": {"listen": "127.0.0.1:0"},
            "sources": [{"name": "s", "url": "sqlite:///:memory:"}],
            "ship": {"to": [{"name": "to", "url": f"file://{file}"}], "poll_s": 0.02},
        }
        words = ("serve", "--http", "127.0.0.1:0", "--config", json.dumps(settings))
        with serving(words, gate.state) as server:
            port = int(server.until("serving core").partition("/mcp")[0].rpartition(":")[2])
            scraped = int(server.until("serving metrics").rpartition(":")[2])

            def until(holds: Callable[[dict[str, float]], bool], what: str) -> None:
                wait_until(lambda: holds(figures(scraped)), what)

            def shipped() -> bool:
                ids = ids_of(record, find_gate_id(record))
                return set(ids) <= set(uids(file.read_bytes().splitlines()))

            lag, fails = 'tidegate_ship_lag_seconds{destination="to"}', "tidegate_ship_failing"
            failing = f'{fails}{{destination="to"}}'
            written, ok = 'tidegate_failing{part="audit"}', 'code="",outcome="ok"'

            def answered(found: dict[str, float]) -> float:
                return sum(
                    value
                    for name, value in found.items()
                    if name.startswith("tidegate_calls_total") and ok in name
                )

            ask_many(port, CALLS)
            wait_until(shipped, "the record is shipped")
            logs.fill()
            ask_many(port, CALLS)
            until(lambda found: found[failing] == 1 and found[lag] > 0, "shipping fails")
            found = figures(scraped)
            assert found[written] == 0 and found["tidegate_degraded"] >= 1
            assert answered(found) == 2 * CALLS, "it stops no call"
            logs.free()
            wait_until(shipped, "what was written meanwhile is shipped")

            gate.fill()
            ask_many(port, CALLS)
            until(lambda found: found[written] == 1, "the record cannot be written")
            refused = 3 * CALLS - answered(figures(scraped))
            assert refused > 0, "no call is answered that is not on record"
            gate.free()
            ask_many(port, CALLS)
            wait_until(shipped, "all of it is shipped")
            assert answered(figures(scraped)) == 4 * CALLS - refused
            until(
                lambda found: not found[written] + found[failing] + found["tidegate_degraded"],
                "all is well",
            )
        came = uids(file.read_bytes().splitlines())
        assert verify(record, gate.state / "audit-key").faults == ()
        assert first_of_each(came) == ids_of(record, find_gate_id(record))
