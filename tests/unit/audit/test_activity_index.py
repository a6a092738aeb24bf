"""The index of the audit log takes each line that the log can hold."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.eventually import wait_until
from tidegate.audit import activity
from tidegate.audit.activity import ActivityIndex
from tidegate.audit.activity_lines import LineFilter
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.segment import segments
from tidegate.config.model import AuditSettings
from tidegate.errors import Code, TidegateError

TIME = "2026-01-02T03:04:05.000000Z"


def call(number: int, **changes: Any) -> bytes:
    fields = {"seq": number, "time": TIME, "phase": "refusal", "call_id": f"c{number}", **changes}
    return json.dumps({**fields, "statement": f"SELECT {number}"}).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{}\n",
        b"[1]\n",
        b"\xff\xfe\x00\n",
        call(2, time=5),
        call(2, time="0001-01-01T00:00:00"),
        call(2, time="9999-12-31T23:59:59-23:59"),
        call(2, rows=2**70),
        call(2, rows=[1]),
        call(2, seq={}),
        call(2, elapsed_ms="long"),
        call(2, details="none"),
        call(2, details=None),
        call(2, code=None, error=["x"]),
        call(2, code=7, error={"x": 1}),
        call(2, actor=[1], client={}, approval=[]),
        call(2, effect=["write"]),
        call(2, phase=["event"]),
        call(2, request={"a": 1}),
        call(2, client="x" * 1_000_000),
    ],
    ids=range(20),
)
def test_a_line_that_no_server_writes_does_not_hide_those_around_it(
    tmp_path: Path, line: bytes
) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(call(1) + line + call(3))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    calls = {each.call_id for each in index.find(LineFilter()).lines}
    index.close()
    assert {"c1", "c3"} <= calls


def test_a_bounded_update_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(b"".join(map(call, range(1, 7_001))))
    index = ActivityIndex(tmp_path / "activity.db", log)
    assert 0 < index.update(batches=1) < 7_000
    assert index.update(batches=1) == 7_000
    assert index.update() == 7_000
    index.close()


@pytest.mark.parametrize("damage", ["header", "pages", "second half", "cut", "emptied"])
def test_an_index_that_is_damaged_while_it_is_open_is_built_again(
    tmp_path: Path, damage: str
) -> None:
    log, path = tmp_path / "audit", tmp_path / "activity.db"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(b"".join(map(call, range(1, 9_001))))
    index = ActivityIndex(path, log)
    index.update()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    size = path.stat().st_size
    with path.open("r+b") as file:
        if damage in ("cut", "emptied"):
            file.truncate(size // 2 if damage == "cut" else 0)
        else:
            begin = {"header": 0, "pages": 4_096, "second half": size // 2}[damage]
            file.seek(begin)
            file.write(b"\xa5" * (4_096 if damage == "header" else size - begin))
    # The log grows meanwhile, as it does.
    with (log / "000001.jsonl").open("ab") as file:
        file.write(call(9_001))

    def found() -> set[str]:
        index.update()
        lines = index.find(LineFilter(words=("select", "8999"))).lines
        return {each.call_id for each in (*lines, *index.find(LineFilter(), limit=1).lines)}

    for _ in range(4):
        try:
            calls = found()
        except TidegateError as error:
            assert error.code is Code.STATE_FAILED
        else:
            break
    else:
        raise AssertionError("it is still damaged")
    assert calls == {"c8999", "c9001"}
    assert index.find(LineFilter()).total == 9_001
    index.close()


@pytest.mark.parametrize("words", [(), ("select",), ("select", "nothing")])
def test_counts_and_facets_are_those_of_all_lines_however_many_a_page_holds(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    lines = [call(n, source="shop" if n % 3 else "desk") for n in range(1, 31)]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    wanted = LineFilter(words=words)
    small, whole = index.find(wanted, limit=3), index.find(wanted, limit=100)
    assert (small.total, small.more, small.facets) == (whole.total, whole.more, whole.facets)
    found = {} if "nothing" in words else {"shop": 20, "desk": 10}
    assert whole.total == sum(found.values()) and dict(whole.facets["source"]) == found
    index.close()


def test_every_session_is_found_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "MOST_COUNTED", 25)  # lines that are looked at for one page
    log = tmp_path / "audit"
    log.mkdir()
    # Sixty callers call in turn, so that each page of lines has calls of sessions shown before.
    lines = [call(n, actor=f"a{n % 60}", source="shop") for n in range(1, 201)]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    seen: set[str] = set()
    before, pages = None, 0
    while pages < 50:
        page = index.sessions(LineFilter(source="shop"), before=before, limit=10)
        assert len(page.sessions) <= 10
        seen |= {each.actor for each in page.sessions}
        first = {each.actor: each.call_id for each in page.sessions}
        assert all(index.line_of(call_id).actor == actor for actor, call_id in first.items())
        before, pages = page.next, pages + 1
        if before is None:
            break
    index.close()
    assert seen == {f"a{n}" for n in range(60)}


def test_a_story_is_read_from_its_first_call_on(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    lines = [call(n, actor=f"a{n % 2}") for n in range(1, 12)]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    session = index.line_of("c1").session
    read: list[str] = []
    after: int | None = 0
    while after is not None:
        page = index.story(LineFilter(session=session), after=after, limit=4)
        read += [line.call_id for line in page.lines]
        after = page.next
    index.close()
    assert read == ["c1", "c3", "c5", "c7", "c9", "c11"]


def test_a_long_log_is_read_in_parts_by_those_who_cannot_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_BATCH", 10)
    monkeypatch.setattr(activity, "_NEARLY_ALL", 1)
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(b"".join(call(n) for n in range(1, 101)))
    index = ActivityIndex(tmp_path / "activity.db", log)
    shares = [index.share()]
    while shares[-1] < 1.0 and len(shares) < 50:
        index.update(seconds=0.0)  # one batch at least, so that it comes to an end
        shares.append(index.share())
    newest = index.find(LineFilter()).lines[0].call_id
    index.close()
    assert (len(shares), shares[0], shares[-1]) == (11, 0.0, 1.0)
    assert shares == sorted(shares)
    assert newest == "c100"


def intent(number: int, **changes: object) -> Event:
    fields: dict[str, object] = {
        "call_id": f"run-{number}", "phase": "intent", "actor": "a", "actor_name": "a",
        "client": "c", "surface": "core", "tool": "query", "source": "shop", "request": "query",
        "effect": "write", "verdict": "allow", "rule": "", "code": "", "statement": "x" * 500,
        "language": None, "dialect": "", **changes,
    }  # fmt: skip
    return Event(**fields)  # type: ignore[arg-type]


def outcomes(index: ActivityIndex) -> dict[str, str]:
    index.update()
    return {each.call_id: each.outcome for each in index.find(LineFilter()).lines if each.call_id}


@pytest.mark.parametrize("rotates", [False, True], ids=["one segment", "several segments"])
def test_a_call_whose_process_ended_without_its_outcome_is_unknown_when_the_next_one_writes(
    tmp_path: Path, rotates: bool
) -> None:
    log, settings = tmp_path / "audit", AuditSettings(segment_bytes=4_096)
    first, other = AuditLog(log, settings=settings if rotates else None), AuditLog(log)
    index = ActivityIndex(tmp_path / "activity.db", log)
    first.append(intent(1))
    for number in range(2, 30):
        first.append(intent(number, phase="outcome"))
    wait_until(lambda: not rotates or len(segments(log)) > 2, "a full segment is continued")
    other.append(intent(30))
    first.append(intent(31))
    assert {name for name, it in outcomes(index).items() if it == "pending"} == {
        *("run-1", "run-30", "run-31")
    }
    first.close()
    successor = AuditLog(log)
    found = outcomes(index)
    assert (found["run-1"], found["run-31"], found["run-30"]) == ("unknown", "unknown", "pending")
    assert found["run-2"] == "ok"
    (lost,) = (each for each in index.find(LineFilter()).lines if each.call_id == "run-1")
    assert "ended before it recorded" in lost.message
    successor.append(intent(1, phase="outcome"))
    other.append(intent(30, phase="outcome"))
    found = outcomes(index)
    assert (found["run-1"], found["run-30"], found["run-31"]) == ("ok", "ok", "unknown")
    index.close()
    (tmp_path / "activity.db").unlink()
    again = ActivityIndex(tmp_path / "activity.db", log)
    assert outcomes(again) == found
    for each in (successor, other):
        each.close()
    again.close()


def test_a_session_counts_the_changes_that_ran_and_no_others(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    changes = {"actor": "a", "effect": "write"}
    lines = [
        call(1, **changes, code="policy.read_only", verdict="deny"),
        call(2, **changes, phase="intent"),
        call(2, **changes, phase="outcome", code="sql.failed"),
        call(3, **changes, phase="intent"),
        call(3, **changes, phase="outcome", code="approval.needed", approval="q1"),
        call(4, **changes, phase="intent"),
        call(4, **changes, phase="outcome", code="", rows=1),
        call(5, **changes, phase="outcome", code=""),
        call(6, **changes, phase="intent"),
        call(7, actor="a", effect="read", phase="outcome", code=""),
    ]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    (session,) = index.sessions(LineFilter()).sessions
    index.close()
    assert (session.calls, session.writes, session.denied) == (7, 2, 1)


def test_reads_of_the_page_for_itself_are_told_from_what_a_person_did(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    page = {"actor": "operator:ada", "surface": "console", "effect": "read", "source": "shop"}
    good = {"phase": "outcome", "code": ""}
    lines = [
        *(call(n, **page, **good, tool="browse") for n in range(1, 11)),
        call(11, **page, **good, tool="count"),
        call(12, **page, tool="browse", phase="intent"),
        call(12, **page, tool="browse", phase="outcome", code="sql.failed"),
        call(13, **page, tool="browse", phase="intent"),
        # Of all others, each would be missed: statements, rows, exports, refusals, agents.
        *(call(20 + n, **page, **good, tool=tool) for n, tool in enumerate(("run", "rows"))),
        call(23, **page, **good, tool="export"),
        call(24, **page, tool="browse", code="policy.source", verdict="deny"),
        call(25, **{**page, "effect": "write"}, **good, tool="browse"),
        call(26, **{**page, "surface": "core"}, **good, tool="browse"),
    ]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    own = {f"c{n}" for n in (*range(1, 12), 13)}
    shown = {f"c{n}" for n in (12, 20, 21, 23, 24, 25, 26)}
    for wanted, expected in ((True, own), (False, shown), (None, own | shown)):
        for narrowed in (LineFilter(own=wanted), LineFilter(own=wanted, words=("select",))):
            found = index.find(narrowed)
            assert {each.call_id for each in found.lines} == expected
            assert found.total == index.count(narrowed) == len(expected)
            assert dict(found.facets["source"]) == {"shop": len(expected)}
    (session,) = index.sessions(LineFilter(own=False)).sessions
    assert (session.calls, session.own, session.writes) == (19, 12, 1)
    (limited,) = index.sessions(LineFilter(own=False, sources=("shop",))).sessions
    assert (limited.calls, limited.own, limited.writes) == (19, 12, 1)
    assert index.newest_of(LineFilter(own=False), 0) > index.newest_of(LineFilter(own=True), 0)
    index.close()


def test_changes_that_were_refused_are_no_writes_to_a_reader_of_some_sources(
    tmp_path: Path,
) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    changes = {"actor": "a", "effect": "write", "source": "shop"}
    lines = [
        call(1, **changes, code="policy.read_only", verdict="deny"),
        call(2, **changes, phase="outcome", code="sql.failed"),
        call(3, **changes, phase="outcome", code=""),
    ]
    (log / "000001.jsonl").write_bytes(b"".join(lines))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    (session,) = index.sessions(LineFilter(sources=("shop",))).sessions
    index.close()
    assert (session.calls, session.writes) == (3, 1)


@pytest.mark.parametrize("wanted", [LineFilter(own=False), LineFilter(own=True)])
def test_lines_without_the_pages_own_reads_are_found_by_an_index(
    tmp_path: Path, wanted: LineFilter
) -> None:
    index = ActivityIndex(tmp_path / "activity.db", tmp_path)
    where, values = activity._where(wanted)
    with index.using() as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN SELECT * FROM lines WHERE {where} ORDER BY lines.n DESC", values
        ).fetchall()
    index.close()
    assert [row[3] for row in plan] == ["SEARCH lines USING INDEX lines_own (own=?)"]
