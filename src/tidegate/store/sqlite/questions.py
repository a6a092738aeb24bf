"""Confirmed pairs, answers and the use of models, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.store.records import AnswerEntry, PairEntry, PairSlot, ProviderUseEntry
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.typed_values import decode_json

_PAIR = ", ".join(PairEntry.__struct_fields__)
_ANSWER = ", ".join(AnswerEntry.__struct_fields__)


class SqliteQuestionStore:
    """`api.QuestionStore` in the state file."""

    def __init__(self, kept: StateConnection, usage: StateConnection, seals: Seals) -> None:
        self._kept = kept
        self._usage = usage
        self._stamps = seals.stamps

    def pairs(self, source_id: str) -> tuple[PairEntry, ...]:
        with self._kept.reading() as connection:
            rows = self._stamps.select(
                connection,
                "confirmed_pairs",
                "WHERE source_id = ? ORDER BY confirmed_at, id",
                (source_id,),
            )
            return tuple([_pair(row) for row in rows])

    def add_pair(self, pair: PairEntry) -> None:
        values = [getattr(pair, name) for name in PairEntry.__struct_fields__]
        values = [
            msgspec.json.encode(value).decode() if isinstance(value, tuple) else value
            for value in values
        ]
        marks = ", ".join("?" * len(values))
        with self._kept.changing() as connection:
            connection.execute(
                f"INSERT OR REPLACE INTO confirmed_pairs ({_PAIR}) VALUES ({marks})", values
            )
            named = dict(zip(PairEntry.__struct_fields__, values, strict=True))
            self._stamps.write(connection, "confirmed_pairs", named)
            self._stamps.sweep(connection, "confirmed_pairs")

    def remove_pair(self, source_id: str, id: str) -> bool:
        with self._kept.changing() as connection:
            connection.execute(
                "DELETE FROM confirmed_pairs WHERE source_id = ? AND id = ?", (source_id, id)
            )
            return connection.changes() > 0

    def add_answer(self, answer: AnswerEntry, forget_before: float) -> None:
        values = [getattr(answer, name) for name in AnswerEntry.__struct_fields__]
        marks = ", ".join("?" * len(values))
        with self._usage.changing() as connection:
            connection.execute("DELETE FROM answers WHERE answered_at < ?", (forget_before,))
            connection.execute(f"INSERT INTO answers ({_ANSWER}) VALUES ({marks})", values)
            self._stamps.write(connection, "answers", msgspec.structs.asdict(answer))
            self._stamps.sweep(connection, "answers")

    def answer(self, handle: str) -> AnswerEntry | None:
        with self._usage.reading() as connection:
            row = connection.execute(
                f"SELECT {_ANSWER} FROM answers WHERE handle = ?", (handle,)
            ).fetchone()
            if row is None or not self._stamps.good(connection, "answers", [row]):
                return None
            return AnswerEntry(*row)

    def used(self, actor: str, kind: str, day: str) -> ProviderUseEntry:
        with self._usage.reading() as connection:
            row = connection.execute(
                "SELECT units, seconds FROM provider_use WHERE actor = ? AND kind = ? AND day = ?",
                (actor, kind, day),
            ).fetchone()
            return ProviderUseEntry() if row is None else ProviderUseEntry(*row)

    def use(self, actor: str, kind: str, day: str, units: int, seconds: float) -> None:
        with self._usage.changing() as connection:
            connection.execute(
                "DELETE FROM provider_use WHERE actor = ? AND kind = ? AND day < ?",
                (actor, kind, day),
            )
            connection.execute(
                "INSERT INTO provider_use VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (actor, kind, day) DO UPDATE"
                " SET units = units + excluded.units, seconds = seconds + excluded.seconds",
                (actor, kind, day, units, seconds),
            )


def _pair(row: tuple[Any, ...]) -> PairEntry:
    fields: dict[str, Any] = dict(zip(PairEntry.__struct_fields__, row, strict=True))
    fields["slots"] = decode_json(fields["slots"], tuple[PairSlot, ...])
    fields["tables"] = msgspec.json.decode(fields["tables"], type=tuple[str, ...])
    return PairEntry(**fields)
