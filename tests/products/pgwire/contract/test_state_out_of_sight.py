"""While a gate does not see its state, no one logs in and no statement is answered."""

from __future__ import annotations

from pathlib import Path

import psycopg

from support.eventually import wait_until
from support.wire_server import wire_server


def test_sessions_get_a_code_until_the_state_is_seen_again(tmp_path: Path) -> None:
    with wire_server(tmp_path) as server, psycopg.connect(server.conninfo()) as connection:
        connection.autocommit = True
        file = server.folder / "state" / "state.db"
        aside = file.with_name("aside.db")

        def answer() -> str:
            try:
                connection.execute("SELECT count(*) FROM item").fetchall()
            except psycopg.Error as error:
                return error.sqlstate or ""
            return "an answer"

        assert answer() == "an answer"
        file.rename(aside)
        wait_until(lambda: answer() == "58000", "statements are refused")
        try:
            psycopg.connect(server.conninfo()).close()
        except psycopg.OperationalError as error:
            assert "state has not been read" in str(error)
        else:
            raise AssertionError("someone logged in")
        aside.rename(file)
        wait_until(lambda: answer() == "an answer", "statements are answered again")
        psycopg.connect(server.conninfo()).close()
