"""What is recorded beside calls, and that no one can fill the disk with it."""

import json
from collections import Counter

import pytest

from tidegate.audit.log import AuditLog
from tidegate.audit.server_events import MAX_ORIGINS, RECORDED_PER_PERIOD, ServerEvent
from tidegate.audit.verify import verify
from tidegate.errors import TidegateError


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()][1:]


def test_a_happening_is_a_line_of_the_chain(tmp_path):
    log = AuditLog(tmp_path, lambda: 1_700_000_000.0)
    log.record_event(
        ServerEvent(name="token.created", actor="cli", actor_name="ann", details={"token": "tok_9"})
    )
    (line,) = lines(log.path)
    del line["hash"]
    assert line == {
        "seq": 2,
        "time": "2023-11-14T22:13:20Z",
        "phase": "event",
        "name": "token.created",
        "actor": "cli",
        "actor_name": "ann",
        "details": {"token": "tok_9"},
    }
    log.close()
    assert verify(tmp_path).intact


def test_details_lose_their_secrets_and_are_cut_to_size(tmp_path):
    log = AuditLog(tmp_path)
    details = {"url": "postgresql://u:hunter2@db/x", "long": "x" * 9_000, "turned": "a\u202eb\n"}
    log.record_event(ServerEvent(name="config.changed", details=details))
    log.close()
    text = log.path.read_bytes()
    assert b"hunter2" not in text
    assert len(text) < 2_000
    assert "\u202e".encode() not in text


def test_a_flood_of_failed_logins_takes_a_few_lines_and_says_how_many_there_were(tmp_path):
    now = [1_000.0]
    log = AuditLog(tmp_path, lambda: now[0])
    for number in range(5_000):
        log.record_repeated(
            ServerEvent(name="login.failed", details={"address": f"10.0.0.{number % 99}"})
        )
    log.record_repeated(ServerEvent(name="lockout", details={"address": "10.0.0.1"}))
    now[0] += 61
    log.record_repeated(ServerEvent(name="lockout", details={"address": "10.0.0.2"}))
    log.close()
    names = Counter(line["name"] for line in lines(log.path))
    assert names == {"login.failed": RECORDED_PER_PERIOD + 1, "lockout": 2}
    (counted,) = (line for line in lines(log.path) if "count" in line)
    assert counted["count"] == 5_000 - RECORDED_PER_PERIOD
    assert len(counted["details"]) == MAX_ORIGINS
    assert sum(map(int, counted["details"].values())) == 5_000 - RECORDED_PER_PERIOD


def test_what_was_counted_is_recorded_when_the_log_closes(tmp_path):
    log = AuditLog(tmp_path)
    for _ in range(RECORDED_PER_PERIOD + 3):
        log.record_repeated(ServerEvent(name="login.failed", actor="anonymous"))
    log.close()
    assert lines(log.path)[-1]["count"] == 3
    assert lines(log.path)[-1]["details"] == {"anonymous": "3"}


def test_a_clock_that_is_put_back_ends_a_period_too(tmp_path):
    now = [1_000.0]
    log = AuditLog(tmp_path, lambda: now[0])
    for _ in range(RECORDED_PER_PERIOD + 1):
        log.record_repeated(ServerEvent(name="login.failed"))
    now[0] = 10.0
    log.record_repeated(ServerEvent(name="login.failed"))
    assert [line.get("count") for line in lines(log.path)][-3:] == [None, 1, None]
    log.close()


def test_a_happening_that_cannot_be_recorded_raises_and_a_tallied_one_does_not(tmp_path):
    log = AuditLog(tmp_path)
    log.close()
    with pytest.raises(TidegateError):
        log.record_event(ServerEvent(name="token.created"))
    log.record_repeated(ServerEvent(name="login.failed"))
    assert lines(log.path) == []
