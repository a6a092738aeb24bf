"""Adds lines of the log to the index that `activity.py` reads."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import apsw

from tidegate.audit.activity_lines import Line, Outcome, ending_of, is_own_read
from tidegate.audit.activity_reading import ReadLine

SESSION_GAP_S = 1_800.0
"""A caller that was quiet for longer begins another session."""
_UNKNOWN = frozenset({"sql.outcome_unknown", "audit.outcome_unrecorded", "bridge.outcome_unknown"})
_FIELDS = Line.__struct_fields__
_READ_TO = (
    "INSERT INTO segments (name, read) VALUES (?, ?) ON CONFLICT DO UPDATE SET read = excluded.read"
)
LOST = "The server ended before it recorded how the call ended."
"""The message of a call whose process wrote no more."""


def add_batch(connection: apsw.Connection, lines: Sequence[ReadLine]) -> None:
    """Add lines of any segments, in the order of their time."""
    with connection:
        for line in lines:
            if line.fields is None:
                continue
            if line.fields.get("phase") == "open":
                _open_segment(connection, line.segment, line.fields)
            else:
                _add(connection, line.segment, line.offset, line.fields)
        ends = {line.segment: line.end for line in lines}
        connection.executemany(_READ_TO, ends.items())


def _open_segment(connection: apsw.Connection, segment: str, fields: dict[str, Any]) -> None:
    """Note which segment the one continues or, if another process goes on with it, that the calls
    which the process before began in it will not be recorded any more. An outcome that comes after
    all, of a process that went on by itself after a failure, is shown."""
    if isinstance(previous := fields.get("previous"), dict):
        follows = str(cast("dict[str, Any]", previous).get("segment", ""))
        connection.execute(
            "INSERT INTO segments VALUES (?, 0, ?) ON CONFLICT DO UPDATE"
            " SET follows = excluded.follows",
            (segment, follows),
        )
        return
    connection.execute(
        "WITH RECURSIVE before (name) AS (SELECT ? UNION SELECT follows FROM segments"
        " JOIN before USING (name) WHERE follows IS NOT NULL) UPDATE lines"
        " SET outcome = 'unknown', message = ? WHERE outcome = 'pending'"
        " AND segment IN (SELECT name FROM before)",
        (segment, LOST),
    )


def _add(connection: apsw.Connection, segment: str, offset: int, fields: dict[str, Any]) -> None:
    outcome, call_id = _outcome_of(fields), str(fields.get("call_id", ""))
    if call_id and outcome != "pending":
        if fields.get("surface") == "console" and not _is_own(fields, outcome):
            connection.execute(
                "UPDATE sessions SET own = own - 1 WHERE id ="
                " (SELECT session FROM lines WHERE call_id = ? AND call_id <> '' AND own = 1)",
                (call_id,),
            )
        connection.execute(
            "UPDATE lines SET outcome = ?, code = ?, message = ?, rows = ?, ms = ?, segment = ?,"
            " offset = ?, seq = ?, own = own AND ?,"
            " approval = CASE approval WHEN '' THEN ? ELSE approval END"
            " WHERE call_id = ? AND call_id <> ''",  # which lets the index serve
            (
                *(outcome, fields.get("code", ""), fields.get("error", "")),
                *(fields.get("rows"), fields.get("elapsed_ms"), segment, offset),
                *(fields.get("seq", 0), _is_own(fields, outcome)),
                *(fields.get("approval", ""), call_id),
            ),
        )
        if connection.changes():
            if _wrote(fields, outcome):
                connection.execute(
                    "UPDATE sessions SET writes = writes + 1 WHERE id ="
                    " (SELECT session FROM lines WHERE call_id = ? AND call_id <> '')",
                    (call_id,),
                )
            return
    details: dict[str, Any] = fields.get("details", {})
    text = {
        name: str(fields.get(name, ""))
        for name in _FIELDS
        if name not in ("n", "time", "session", "rows", "ms", "event", "offset", "seq", "segment")
    }
    event = str(fields.get("name", ""))
    text |= {
        "call_id": call_id,
        "source": text["source"] or str(details.get("source", "")),
        "approval": text["approval"] or str(details.get("approval", "")),
        "message": str(fields.get("error", "")) or _details_text(details),
        "outcome": outcome,
    }
    session = _session_of(connection, fields, outcome) if call_id else 0
    values: dict[str, Any] = {
        **text,
        "time": fields["at"],
        "segment": segment,
        "offset": offset,
        "seq": fields.get("seq", 0),
        "session": session,
        "rows": fields.get("rows"),
        "ms": fields.get("elapsed_ms"),
        "event": event,
        "own": _is_own(fields, outcome),
    }
    names = [*(name for name in _FIELDS if name != "n"), "own"]
    marks = ", ".join(f":{name}" for name in names)
    connection.execute(f"INSERT OR IGNORE INTO lines ({', '.join(names)}) VALUES ({marks})", values)
    if connection.changes():
        words = ("statement", "actor_name", "client", "tool", "source", "code", "message", "rule")
        connection.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            (connection.last_insert_rowid(), " ".join([event, *(text[each] for each in words)])),
        )


def _outcome_of(fields: dict[str, Any]) -> Outcome:
    phase, code = fields.get("phase"), str(fields.get("code", ""))
    if phase == "event":
        return "event"
    if phase == "intent":
        return "pending"
    if code in _UNKNOWN:
        return "unknown"
    verdict, approval = str(fields.get("verdict", "")), str(fields.get("approval", ""))
    return ending_of(str(phase), code, verdict, approval) if code else "ok"


def _is_own(fields: dict[str, Any], outcome: Outcome) -> bool:
    surface, tool = str(fields.get("surface", "")), str(fields.get("tool", ""))
    return is_own_read(surface, tool, str(fields.get("effect", "")), outcome)


def _wrote(fields: dict[str, Any], outcome: Outcome) -> bool:
    """Whether the call may have changed something: it was let through, and it ran."""
    is_change = fields.get("effect", "read") not in ("", "read", "session")
    return is_change and outcome in ("ok", "unknown")


def _session_of(connection: apsw.Connection, fields: dict[str, Any], outcome: Outcome) -> int:
    """The number of the caller's session, which the call prolongs."""
    actor, client, at = str(fields.get("actor", "")), str(fields.get("client", "")), fields["at"]
    counted = {
        "at": at,
        "denied": outcome == "denied",
        "writes": _wrote(fields, outcome),
        "own": _is_own(fields, outcome),
        "actor": actor,
        "client": client,
        "name": str(fields.get("actor_name", "")),
    }
    found = connection.execute(
        "UPDATE sessions SET ended_at = max(ended_at, :at), calls = calls + 1,"
        " denied = denied + :denied, writes = writes + :writes, own = own + :own"
        " WHERE id = (SELECT id FROM sessions"
        " WHERE actor = :actor AND client = :client AND ended_at >= :at - :gap"
        " ORDER BY ended_at DESC LIMIT 1) RETURNING id",
        {**counted, "gap": SESSION_GAP_S},
    ).fetchone()
    if found is None:
        connection.execute(
            "INSERT INTO sessions (actor, actor_name, client, started_at, ended_at, calls, denied,"
            " writes, own) VALUES (:actor, :name, :client, :at, :at, 1, :denied, :writes, :own)",
            counted,
        )
        return connection.last_insert_rowid()
    return int(cast("tuple[Any, ...]", found)[0])


def _details_text(details: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in details.items())
