"""Syslog over TCP and TLS: to rsyslog of Debian, and to a hand-made receiver where none is."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from products.shipping.support.ocsf_schema import validated
from products.shipping.support.receivers import rsyslog, rsyslogd, syslog_receiver
from products.shipping.support.record import first_of_each, ids_of, open_record, uids, write
from support.certificates import Authority
from support.eventually import wait_until
from support.free_ports import claim_port
from tidegate.products.shipping.destination import DeliveryFailed
from tidegate.products.shipping.events import make_events
from tidegate.products.shipping.segments import SegmentReader
from tidegate.products.shipping.settings import DestinationSettings
from tidegate.products.shipping.shipper import Shipper
from tidegate.products.shipping.syslog import SyslogDestination
from tidegate.store.sqlite.state import SqliteState

GATE = "g"
real = pytest.mark.skipif(rsyslogd() is None, reason="rsyslog is not installed")
FRAME = re.compile(
    rb"<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+) tidegate - (\S+)"
    rb' \[origin software="tidegate" swVersion="[^"]+"\] (\{.*\})'
)


@contextmanager
def shipping(
    record: Path, settings: DestinationSettings, *, prove_s: float = 0.2, settle_s: float = 0.1
) -> Generator[Callable[[], int]]:
    """Ship to syslog meanwhile; gives what says how many bytes the saved positions have."""
    state = SqliteState(record.parent / "state.db")
    state.shipping.set_destinations(GATE, ["siem"])
    destination = SyslogDestination(settings, prove_s=prove_s, settle_s=settle_s)
    shipper = Shipper("siem", GATE, SegmentReader(record), destination, state.shipping, 0.02)
    shipper.load()
    shipper.start()
    try:
        yield lambda: sum(each.offset for each in state.shipping.positions(GATE, "siem").values())
    finally:
        shipper.ask_to_stop()
        shipper.join(60)
        state.close()


def size_of(record: Path) -> int:
    return sum(path.stat().st_size for path in record.glob("*.jsonl"))


def recorded(tmp_path: Path, calls: int = 50) -> Path:
    log = open_record(tmp_path / "audit")
    write(log, *(f"call-{number}" for number in range(calls)))
    log.close()
    return tmp_path / "audit"


def certificates(tmp_path: Path) -> tuple[Path, Path, Path]:
    authority = Authority(tmp_path, "logs")
    return (authority.file, *authority.sign("receiver", "127.0.0.1"))


@real
@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_rsyslog_has_every_line_once_before_the_position_is_saved(
    tmp_path: Path, tls: bool
) -> None:
    record = recorded(tmp_path)
    files = certificates(tmp_path) if tls else None
    with rsyslog(tmp_path / "rsyslog", claim_port(), files) as server:
        url = f"syslog{'+tls' if tls else ''}://127.0.0.1:{server.port}"
        ca_file = None if files is None else str(files[0])
        with shipping(record, DestinationSettings("siem", url, ca_file)) as saved:
            wait_until(lambda: saved() == size_of(record), "it is acknowledged")
            found = server.lines()
    assert uids(found) == ids_of(record, GATE)
    for line in found:
        validated(line)


@real
def test_rsyslog_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    record = recorded(tmp_path, 3_000)
    log = open_record(record)
    with rsyslog(tmp_path / "rsyslog", claim_port()) as server:
        url = f"syslog://127.0.0.1:{server.port}"
        with shipping(record, DestinationSettings("siem", url), prove_s=0.3, settle_s=0.3) as saved:
            for round in range(4):
                before = len(server.lines())
                write(log, *(f"round-{round}-{number}" for number in range(2_000)))
                wait_until(lambda before=before: len(server.lines()) > before, "some came")
                server.kill()
                server.start()
            log.close()
            wait_until(lambda: saved() == size_of(record), "all is acknowledged")
            found = uids(server.lines())
    assert set(found) == set(ids_of(record, GATE))
    assert len(found) > len(set(found))  # or no kill came where it matters


def test_a_frame_is_of_rfc_5424_with_its_length_before_it(tmp_path: Path) -> None:
    record = recorded(tmp_path, 3)
    with syslog_receiver() as receiver:
        url = f"syslog://127.0.0.1:{receiver.port}"
        with shipping(record, DestinationSettings("siem", url)) as saved:
            wait_until(lambda: saved() == size_of(record), "it is acknowledged")
    found = [FRAME.fullmatch(each) for each in receiver.messages]
    assert all(found)
    assert uids(each[5] for each in found if each) == ids_of(record, GATE)
    *_, last = found
    assert last is not None
    assert (last[1], last[4]) == (b"110", b"call.outcome")
    assert last[2].startswith(time.strftime("%Y-", time.gmtime()).encode())


def test_a_receiver_that_ends_an_idle_connection_is_no_fault(tmp_path: Path) -> None:
    record = recorded(tmp_path, 3)
    with syslog_receiver() as receiver:
        destination = SyslogDestination(
            DestinationSettings("siem", f"syslog://127.0.0.1:{receiver.port}"),
            prove_s=0.0,
            settle_s=0.0,
        )
        (batch,) = SegmentReader(record).read({})
        destination.send(b"".join(make_events(GATE, batch.segment, batch.text, batch.after)))
        wait_until(lambda: destination.acknowledged() == 1, "it is acknowledged")
        receiver.close_all()
        for _ in range(20):
            assert destination.acknowledged() == 1
        destination.send(b"".join(make_events(GATE, batch.segment, batch.text, batch.after)))
        wait_until(lambda: destination.acknowledged() == 2, "it is connected again")
        destination.reset()


def test_tls_is_checked_by_the_named_authority_and_the_host(tmp_path: Path) -> None:
    authority, cert, key = certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    record = recorded(tmp_path, 5)
    with syslog_receiver(context) as receiver:
        url = f"syslog+tls://127.0.0.1:{receiver.port}"
        settings = DestinationSettings("siem", url, str(authority), str(cert), str(key))
        with shipping(record, settings) as saved:
            wait_until(lambda: saved() == size_of(record), "it is acknowledged")
    assert len(receiver.messages) == len(ids_of(record, GATE))


def test_what_breaks_before_it_is_proved_comes_again(tmp_path: Path) -> None:
    """The hand-made receiver reads all of it and is gone before it can prove that."""
    record = recorded(tmp_path, 5)
    port = 0
    with syslog_receiver() as first:
        port = first.port
        url = f"syslog://127.0.0.1:{port}"
        with shipping(record, DestinationSettings("siem", url), prove_s=60) as saved:
            wait_until(lambda: len(first.messages) == 6, "all came")
            assert saved() == 0
    with syslog_receiver() as second:
        url = f"syslog://127.0.0.1:{second.port}"
        with shipping(record, DestinationSettings("siem", url)) as saved:
            wait_until(lambda: saved() == size_of(record), "it is acknowledged")
    ids = [FRAME.fullmatch(each) for each in (*first.messages, *second.messages)]
    assert first_of_each(uids(each[5] for each in ids if each)) == ids_of(record, GATE)
    assert len(ids) == 12


def test_a_receiver_that_goes_on_talking_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.products.shipping.syslog.PATIENCE_S", 0.2)
    listener, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def talk() -> None:
        connection = listener.accept()[0]
        with connection, suppress(OSError):
            for _ in range(2_000):
                connection.send(b"x")
                if stop.wait(0.001):
                    break

    talking = threading.Thread(target=talk)
    talking.start()
    settings = DestinationSettings("to", f"syslog://127.0.0.1:{listener.getsockname()[1]}")
    destination = SyslogDestination(settings, prove_s=0.0)
    try:
        destination.send(b"")
        with pytest.raises(DeliveryFailed, match="does not end a connection"):
            destination.acknowledged()
    finally:
        stop.set()
        destination.reset()
        talking.join(60)
        listener.close()
