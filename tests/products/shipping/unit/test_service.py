"""Shipping as a server runs it: one process at a time, calls withheld only at the limit, and said
where people look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from products.shipping.support.receivers import OtlpReceiver, otlp_receiver
from products.shipping.support.record import first_of_each, ids_of, uids
from support.eventually import wait_until
from support.otlp_server import respond
from tidegate.app import App
from tidegate.audit.shipped import find_gate_id
from tidegate.config.model import AuditSettings, Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.products.shipping.service import ShippingService, make_service
from tidegate.products.shipping.settings import DestinationSettings, ShipSettings
from tidegate.serve.status import status_of, without_names

WRITER = Actor("tok_1", "writer", Scope.FULL_ACCESS)
SELECT, INSERT = "SELECT count(*) FROM t", "INSERT INTO t(n) VALUES (1)"


class Gate:
    """An application over one SQLite file, with its service."""

    def __init__(self, directory: Path, mode: Any = "strict", **ship: Any) -> None:
        file = directory / "shop.db"
        with apsw.Connection(str(file)) as made:
            made.execute("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, n)")
        self.app = App.open(
            Config(
                state=str(directory / "state"),
                sources=(SourceSettings("shop", f"sqlite:///{file}", access="write"),),
                allow_writes=True,
                audit=AuditSettings(failure_mode=mode),
                sections={"ship": ShipSettings(poll_s=0.02, **ship)},
            )
        )
        service = make_service(self.app)
        assert service is not None
        self.service: ShippingService = service
        self.app.services.append(service)
        self.record = directory / "state" / "audit"
        self.loop = asyncio.Runner()

    @property
    def ids(self) -> list[str]:
        return ids_of(self.record, find_gate_id(self.record))

    def ask(self, text: str, scope: Scope = Scope.FULL_ACCESS) -> Code | None:
        """Send one statement; how it was refused."""
        call = Call(WRITER, "test", "tool", Query(Statement(text)), "shop", scope=scope)
        try:
            self.loop.run(self.app.gateway.handle(call))
        except TidegateError as error:
            return error.code
        return None


def wait_until_caught_up(made: Gate, receiver: Any) -> None:
    """A destination that was never told all of the record withholds no call."""
    wait_until(lambda: set(receiver.ids) >= set(made.ids), "every line came")
    wait_until(lambda: not any(each.value for each in made.service.figures()), "and is known")


def wait_until_withheld(made: Gate, *answers: Code | None) -> None:
    """Ask, with one of these answers, until the limit is reached."""

    def is_withheld() -> bool:
        assert made.ask(SELECT) in (*answers, Code.AUDIT_UNAVAILABLE)
        return bool(made.app.audit.withheld)

    wait_until(is_withheld, "calls are withheld")


@contextmanager
def gate(directory: Path, mode: Any = "strict", **ship: Any) -> Generator[Gate]:
    made = Gate(directory, mode, **ship)
    made.service.start()
    try:
        yield made
    finally:
        made.service.stop()
        made.loop.run(made.app.close())
        made.loop.close()


def to(receiver: OtlpReceiver, name: str = "otel") -> tuple[DestinationSettings, ...]:
    return (DestinationSettings(name, receiver.url),)


def refuse(handler: Any, size: int) -> bool:
    respond(handler, 503, retry_after="0")
    return False


def test_a_section_without_a_destination_runs_nothing(tmp_path: Path) -> None:
    app = App.open(Config(state=str(tmp_path), sections={"ship": ShipSettings()}))
    assert make_service(app) is None
    asyncio.run(app.close())


def test_calls_are_shipped_while_they_are_made_and_nothing_is_wrong(tmp_path: Path) -> None:
    with otlp_receiver() as receiver, gate(tmp_path, to=to(receiver)) as made:
        for _ in range(5):
            assert made.ask(SELECT) is None
        wait_until(lambda: set(receiver.ids) >= set(made.ids), "the lines came")
        assert dict(made.service.problems()) == {}
        figures = {
            (each.name, *each.labels.values()): each.value for each in made.service.figures()
        }
        assert figures["tidegate_ship_failing", "otel"] == 0
        assert ("tidegate_ship_lag_seconds", "otel") in figures
        wait_until(
            lambda: all(each.value == 0 for each in made.service.figures()), "nothing is missing"
        )


def test_one_process_ships_and_the_next_goes_on_when_it_ends(tmp_path: Path) -> None:
    with otlp_receiver() as receiver, gate(tmp_path, to=to(receiver)) as first:
        wait_until(lambda: receiver.ids, "the first ships")
        with gate(tmp_path, to=to(receiver)) as second:
            assert first.ask(SELECT) is None
            assert second.ask(SELECT) is None
            wait_until(lambda: set(receiver.ids) >= set(first.ids), "those of both came")
            assert len(receiver.ids) == len(set(receiver.ids))
            assert dict(second.service.problems()) == {}
            first.service.stop()
            assert second.ask(SELECT) is None
            wait_until(lambda: set(receiver.ids) >= set(second.ids), "the second ships now")
        assert len(receiver.ids) == len(set(receiver.ids))


def test_a_destination_that_is_down_is_said_and_stops_no_call(tmp_path: Path) -> None:
    with otlp_receiver() as receiver, gate(tmp_path, to=to(receiver, "siem-of-acme")) as made:
        receiver.before = refuse
        assert made.ask(INSERT) is None
        wait_until(lambda: made.service.problems(), "it is seen")
        wait_until(lambda: "lacks 0 " not in made.service.problems()["shipping"], "and measured")
        said = made.app.conditions.degraded()["shipping"]
        assert "siem-of-acme" in said
        assert "HTTP status 503" in said
        assert status_of(made.app)["failing"]["shipping"] == said
        assert without_names(made.app)["shipping"] == "see the log of the server"
        figures = {each.name: each.value for each in made.service.figures()}
        assert figures["tidegate_ship_failing"] == 1
        assert figures["tidegate_ship_lag_bytes"] > 0
        assert made.ask(INSERT) is None
        assert made.ask(SELECT) is None
        assert made.app.readiness.failures() == {}
        receiver.before = lambda handler, size: True
        wait_until(lambda: not made.service.problems(), "it works again")
    assert first_of_each(receiver.ids) == [each for each in made.ids if each in set(receiver.ids)]


@pytest.mark.parametrize(
    ("mode", "read", "change"),
    [
        ("strict", Code.AUDIT_UNAVAILABLE, Code.AUDIT_UNAVAILABLE),
        ("strict_mutations", None, Code.AUDIT_UNAVAILABLE),
        ("best_effort", None, None),
    ],
)
def test_at_the_limit_the_failure_mode_decides_and_every_call_is_on_record(
    tmp_path: Path,
    mode: Literal["strict", "strict_mutations", "best_effort"],
    read: Code | None,
    change: Code | None,
) -> None:
    with (
        otlp_receiver() as receiver,
        gate(tmp_path, mode, to=to(receiver), max_lag_bytes=4_000) as made,
    ):
        assert made.ask(INSERT) is None
        wait_until_caught_up(made, receiver)
        receiver.before = refuse
        wait_until_withheld(made, None, read)
        lines = len(made.ids)
        assert made.ask(SELECT) is read
        assert made.ask(INSERT) is change
        assert len(made.ids) > lines
        failing = "audit" in made.app.readiness.failures()
        assert failing is (mode != "best_effort")
        assert "ship.max_lag_bytes" in made.app.conditions.degraded()["shipping"]
        receiver.before = lambda handler, size: True
        wait_until(lambda: not made.app.audit.withheld, "it has caught up")
        assert made.ask(INSERT) is None
        assert made.app.readiness.failures() == {}
        wait_until(lambda: set(receiver.ids) >= set(made.ids), "every line came")


def test_a_new_destination_stops_no_call_before_it_has_caught_up_once(tmp_path: Path) -> None:
    with otlp_receiver() as receiver:
        with gate(tmp_path, to=to(receiver, "old"), max_lag_bytes=4_000) as made:
            for _ in range(20):
                made.ask(SELECT)
            wait_until(lambda: set(receiver.ids) >= set(made.ids), "the old one has it")
        receiver.before = refuse
        with gate(tmp_path, to=to(receiver, "new"), max_lag_bytes=4_000) as made:
            wait_until(lambda: made.service.problems(), "the new one fails")
            assert made.ask(INSERT) is None
            assert made.app.audit.withheld == ""
            receiver.before = lambda handler, size: True
            wait_until(lambda: not any(each.value for each in made.service.figures()), "caught up")
            receiver.before = refuse
            wait_until_withheld(made, None)
            assert made.ask(INSERT) is Code.AUDIT_UNAVAILABLE


def test_a_process_that_does_not_ship_withholds_calls_by_the_same_rule(tmp_path: Path) -> None:
    with otlp_receiver() as receiver:
        ship = {"to": to(receiver), "max_lag_bytes": 2_000}
        with gate(tmp_path, **ship) as first, gate(tmp_path, **ship) as second:
            assert first.ask(SELECT) is None
            wait_until_caught_up(first, receiver)
            receiver.before = refuse
            wait_until_withheld(first, None)
            wait_until(lambda: second.app.audit.withheld, "the other sees it")
            assert second.ask(SELECT) is Code.AUDIT_UNAVAILABLE


def test_the_secret_in_the_path_of_a_receiver_is_read_when_a_batch_is_sent(tmp_path: Path) -> None:
    secret = tmp_path / "path"
    with otlp_receiver() as receiver:
        url = receiver.url.replace("logs", f"${{FILE:{secret}}}")
        with gate(tmp_path, to=(DestinationSettings("siem", url),)) as made:
            made.ask(SELECT)
            said = wait_until(lambda: made.service.problems(), "it is missed")
            assert "cannot be read" in said["shipping"]
            secret.write_text("logs\n")
            wait_until(lambda: set(receiver.ids) >= set(made.ids), "it came")


def test_no_record_of_another_life_has_the_same_ids(tmp_path: Path) -> None:
    """A restored backup begins its record again, with the numbers of the first."""
    with otlp_receiver() as receiver:
        for life in ("one", "two"):
            (tmp_path / life).mkdir()
            with gate(tmp_path / life, to=to(receiver)) as made:
                made.ask(SELECT)
                wait_until(lambda made=made: set(receiver.ids) >= set(made.ids), "it came")
    assert len(receiver.ids) == len(set(receiver.ids))


def test_a_file_beside_a_failing_receiver_gets_everything(tmp_path: Path) -> None:
    with otlp_receiver() as receiver:
        receiver.before = refuse
        file = DestinationSettings("file", f"file://{tmp_path}/record.jsonl")
        with gate(tmp_path, to=(*to(receiver), file)) as made:
            made.ask(INSERT)
            has: Callable[[], bool] = lambda: (  # noqa: E731
                (tmp_path / "record.jsonl").exists()
                and set(uids((tmp_path / "record.jsonl").read_bytes().splitlines()))
                >= set(made.ids)
            )
            wait_until(has, "the file has it")
