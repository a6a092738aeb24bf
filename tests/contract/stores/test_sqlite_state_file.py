"""The SQLite state file: private, ours, migrated once, refused when it is of another version."""

import stat
import subprocess
import sys

import apsw
import pytest

from support.eventually import PATIENCE_S
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.store.sqlite import connection as database
from tidegate.store.sqlite.state import SqliteState


def refusal(path):
    with pytest.raises(TidegateError) as caught:
        SqliteState(path)
    assert caught.value.code is Code.STATE_FAILED
    return caught.value


def test_the_files_are_for_their_owner_alone(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    state.sources.add(Source(id="1", name="a", url="x", engine="e", dialect="d"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("reserve", "state.db", "state.db-wal", "state.db-shm"), 0o600)
    state.close()


def test_the_number_of_the_newest_script_is_known():
    numbers = [int(path.name[:4]) for path in database.scripts()]
    assert numbers == list(range(1, database.NEWEST + 1))


def mark(path, application, version):
    """Write the header of a state file: whose it is, and its version."""
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize(
    ("application", "version", "said"),
    [
        (database.APPLICATION_ID, database.NEWEST + 1, "newer version"),
        (database.APPLICATION_ID, 0, "unknown version"),
        (database.APPLICATION_ID, -1, "unknown version"),
        (0x54474154, 1, "before the first release"),
        (0x54474154, 15, "before the first release"),
        (7, database.NEWEST, "another program"),
    ],
)
def test_a_file_of_another_version_is_refused_and_left_alone(tmp_path, application, version, said):
    path = tmp_path / "state.db"
    SqliteState(path).close()
    mark(path, application, version)
    before = path.read_bytes()
    assert said in refusal(path).message
    assert path.read_bytes() == before


def test_a_state_of_an_earlier_version_takes_the_later_scripts_alone(tmp_path, monkeypatch):
    path = tmp_path / "state.db"
    state = SqliteState(path)
    state.sources.add(Source(id="1", name="a", url="x", engine="e", dialect="d"))
    state.close()
    number = database.NEWEST + 1
    later = tmp_path / f"{number:04}_later.sql"
    later.write_text("CREATE TABLE later (a)")
    scripts = [*database.scripts(), later]
    monkeypatch.setattr(database, "scripts", lambda: scripts)
    monkeypatch.setattr(database, "NEWEST", number)
    state = SqliteState(path)
    assert [source.name for source in state.sources.list()] == ["a"]
    state.close()
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM later").get == 0
    assert connection.execute("PRAGMA user_version").get == number
    connection.close()


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "state.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE precious (a)")
    connection.close()
    before = path.read_bytes()
    assert "another program" in refusal(path).message
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "state.db"
    path.write_bytes(b"precious " * 1000)
    refusal(path)
    assert path.read_bytes() == b"precious " * 1000


def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path):
    refusal(tmp_path)
    refusal(tmp_path / "nowhere" / "state.db")


def test_processes_that_start_at_once_make_one_state(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from tidegate.store.sqlite.state import SqliteState\n"
        "from tidegate.model.sources import Source\n"
        "sys.stdin.read()\n"
        "name = sys.argv[2]\n"
        "state = SqliteState(Path(sys.argv[1]))\n"
        "state.sources.add(Source(id=name, name=name, url='x', engine='e', dialect='d'))\n"
    )
    path = tmp_path / "state.db"
    children = [
        subprocess.Popen([sys.executable, "-c", program, path, f"s{n}"], stdin=subprocess.PIPE)
        for n in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    assert [child.wait(PATIENCE_S) for child in children] == [0] * 4
    state = SqliteState(path)
    assert [source.name for source in state.sources.list()] == ["s0", "s1", "s2", "s3"]
    state.close()


def test_a_state_that_another_process_makes_while_we_look_is_ours(tmp_path, monkeypatch):
    path = tmp_path / "state.db"
    apsw.Connection(str(path)).execute("PRAGMA journal_mode = WAL")
    connect = database.connect
    others = []

    def connect_beside_another(path, *options):
        connection = connect(path, *options)

        def make_it_first(_, text, __):
            if text.endswith("user_version") and not others:
                others.append(connection)
                database.prepare(path)
            return True

        connection.exec_trace = make_it_first
        return connection

    monkeypatch.setattr(database, "connect", connect_beside_another)
    database.prepare(path)
    assert others
    SqliteState(path).close()


def test_a_state_that_another_process_holds_says_so_and_when_to_retry(tmp_path, monkeypatch):
    monkeypatch.setattr("tidegate.store.sqlite.connection._BUSY_MS", 1)
    path = tmp_path / "state.db"
    state = SqliteState(path)
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(TidegateError) as caught:
        state.sources.remove("a")
    assert caught.value.code is Code.STATE_FAILED
    assert caught.value.retry_after_s == 1.0
    holder.close()
    assert not state.sources.remove("a")
    state.close()


def test_a_revoked_token_cannot_be_revived_even_in_sql(tmp_path):
    path = tmp_path / "state.db"
    SqliteState(path).close()
    connection = apsw.Connection(str(path))
    connection.execute(
        "INSERT INTO tokens (id, name, prefix, digest, scope, created_at, revoked_at)"
        " VALUES ('1', 'a', 'tg_', x'00', 'readOnly', 1, 2)"
    )
    with pytest.raises(apsw.ConstraintError):
        connection.execute("UPDATE tokens SET revoked_at = NULL")
    connection.close()


def test_on_a_full_disk_changes_go_into_the_room_that_was_reserved(tmp_path, monkeypatch):
    """No disk is filled here: what counts is that the log does not grow."""
    monkeypatch.setattr(database, "_ROOM", 2**62)
    state = SqliteState(tmp_path / "state.db")
    log = tmp_path / "state.db-wal"
    reserved = log.stat().st_size
    assert reserved >= 65_536
    for number in range(100):
        state.sources.add(Source(id=str(number), name=f"s{number}", url="x" * 500, engine="e",
                                 dialect="d"))  # fmt: skip
        assert state.sources.remove(f"s{number}")
    assert log.stat().st_size == reserved
    assert state.sources.list() == ()
    state.close()
