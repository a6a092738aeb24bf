"""Confirmed pairs, answers and the use of models, in PostgreSQL."""

from __future__ import annotations

from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import AnswerEntry, PairEntry, ProviderUseEntry

_PAIRS = Rows(PairEntry, as_json=("slots", "tables"))
_ANSWERS = Rows(AnswerEntry)


class PostgresQuestionStore:
    """`api.QuestionStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pairs(self, source_id: str) -> tuple[PairEntry, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.stamps.select(
                connection,
                "confirmed_pairs",
                "WHERE source_id = %s ORDER BY confirmed_at, id",
                (source_id,),
            )
            return tuple(_PAIRS.records(rows))

    def add_pair(self, pair: PairEntry) -> None:
        with self._database.changing("questions") as connection:
            connection.ask(
                "DELETE FROM tidegate.confirmed_pairs"
                " WHERE id = %s OR source_id = %s AND question = %s",
                (pair.id, pair.source_id, pair.question),
            )
            connection.ask(
                f"INSERT INTO tidegate.confirmed_pairs ({_PAIRS.columns}) VALUES ({_PAIRS.marks})",
                _PAIRS.values(pair),
            )
            self._database.seals.stamps.write(connection, "confirmed_pairs", _PAIRS.named(pair))
            self._database.seals.stamps.sweep(connection, "confirmed_pairs")

    def remove_pair(self, source_id: str, id: str) -> bool:
        with self._database.changing() as connection:
            return (
                connection.change(
                    "DELETE FROM tidegate.confirmed_pairs WHERE source_id = %s AND id = %s",
                    (source_id, id),
                )
                > 0
            )

    def add_answer(self, answer: AnswerEntry, forget_before: float) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask("DELETE FROM tidegate.answers WHERE answered_at < %s", (forget_before,))
            connection.ask(
                f"INSERT INTO tidegate.answers ({_ANSWERS.columns}) VALUES ({_ANSWERS.marks})",
                _ANSWERS.values(answer),
            )
            self._database.seals.stamps.write(connection, "answers", _ANSWERS.named(answer))
            self._database.seals.stamps.sweep(connection, "answers")

    def answer(self, handle: str) -> AnswerEntry | None:
        with self._database.reading() as connection:
            row = connection.row(
                f"SELECT {_ANSWERS.columns} FROM tidegate.answers WHERE handle = %s", (handle,)
            )
            stamps = self._database.seals.stamps
            if row is None or not stamps.good(connection, "answers", [row]):
                return None
            return _ANSWERS.record(row)

    def used(self, actor: str, kind: str, day: str) -> ProviderUseEntry:
        with self._database.reading() as connection:
            row = connection.row(
                "SELECT units, seconds FROM tidegate.provider_use"
                " WHERE actor = %s AND kind = %s AND day = %s",
                (actor, kind, day),
            )
            return ProviderUseEntry() if row is None else ProviderUseEntry(*row)

    def use(self, actor: str, kind: str, day: str, units: int, seconds: float) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "DELETE FROM tidegate.provider_use WHERE actor = %s AND kind = %s AND day < %s",
                (actor, kind, day),
            )
            connection.ask(
                "INSERT INTO tidegate.provider_use AS had VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (actor, kind, day) DO UPDATE SET units = had.units + excluded.units,"
                " seconds = had.seconds + excluded.seconds",
                (actor, kind, day, units, seconds),
            )
