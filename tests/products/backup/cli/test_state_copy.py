"""`state copy` to PostgreSQL and back, `state backup` there, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import support.postgres_server as postgres_server
from support.audit_records import records
from support.command_line import tidegate
from support.operator_terminal import operator_terminal
from tidegate.identity.operator_passphrase import OperatorPassphrase

TARGET = "${ENV:PGTEST_STATE}"
KEY = "a key of the gates in these tests"
SEALED = ("--config", '{"state_key": "${ENV:PGTEST_KEY}"}')


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> str:
    """A reference to the URL of a database without a state."""
    server = postgres_server.shared()
    monkeypatch.setenv("PGTEST_STATE", server.url(server.new_database()))
    monkeypatch.setenv("PGTEST_KEY", KEY)
    return TARGET


def names(*words: str) -> list[str]:
    ended = tidegate("token", "list", "--json", *words)
    assert ended.status == 0, ended.err
    return [each["name"] for each in ended.json["tokens"]]


def test_a_state_is_copied_to_postgresql_and_back_and_used_in_one_place(
    tmp_path: Path, target: str
) -> None:
    state = tmp_path / "state"
    here = ("--state", str(state), *SEALED)
    there = (*here, "--state", target)
    assert tidegate("token", "create", "ann", "--scope", "readOnly", *here).status == 0
    copied = tidegate("state", "copy", target, *here)
    assert copied.status == 0 and "refuses every process" in copied.err, copied.err
    assert names(*there) == ["ann"]
    assert tidegate("token", "create", "bob", "--scope", "readOnly", *there).status == 0
    refused = tidegate("token", "list", *here)
    assert refused.status != 0 and "has moved to PostgreSQL" in refused.err

    secret = tmp_path / "secret"
    secret.write_text("correct horse battery staple\n")
    file = str(tmp_path / "b")
    given = ("--passphrase-file", str(secret))
    assert tidegate("state", "backup", file, *given, *there).status == 0
    restored = ("--state", str(tmp_path / "restored"), *SEALED)
    into = ("state", "restore", file, "--without-record", *given)
    refused = tidegate(*into, *restored, "--state", target)
    assert refused.status != 0 and "makes a state directory" in refused.err
    assert tidegate("token", "create", "cyd", "--scope", "readOnly", *there).status == 0
    # The settings of the gates name the database that they use: the backup is not put there.
    gates = '{"state_key": "${ENV:PGTEST_KEY}", "state_url": "${ENV:PGTEST_STATE}"}'
    ended = tidegate(*into, "--state", str(tmp_path / "restored"), "--config", gates)
    assert ended.status == 0, ended.err
    assert names(*restored) == ["ann", "bob"]
    kept = [each.get("name") for each in records(tmp_path / "restored")]
    assert "state.restored" in kept

    assert tidegate("state", "copy", str(tmp_path / "x"), *here).status != 0  # not a copy's target
    again = tidegate("state", "copy", target, *restored)
    assert again.status != 0 and "There is a state in that database" in again.err
    unkeyed = tidegate("state", "copy", str(state), "--state", str(state), "--state", target)
    assert unkeyed.status != 0 and "Name the key that they have with --config" in unkeyed.err
    back = tidegate("state", "copy", str(state), *there)
    assert back.status == 0, back.err
    assert names(*here) == ["ann", "bob", "cyd"]
    assert [each.get("name") for each in records(state)].count("state.copied") == 2


def test_what_any_gate_took_away_stays_away_in_a_restored_state(
    tmp_path: Path, target: str
) -> None:
    """Also where the settings still name the database, which may be lost."""
    a, b = (("--state", str(tmp_path / name), "--state", target, *SEALED) for name in "ab")
    for name in ("ann", "bob"):
        assert tidegate("token", "create", name, "--scope", "readOnly", *a).status == 0
    assert tidegate("token", "list", *b).status == 0
    secret = tmp_path / "secret"
    secret.write_text("correct horse battery staple\n")
    file, given = str(tmp_path / "f"), ("--passphrase-file", str(secret))
    assert tidegate("state", "backup", file, *given, *a).status == 0
    assert tidegate("token", "revoke", "bob", *b).status == 0

    settings = f'{{"state_key": "${{ENV:PGTEST_KEY}}", "state_url": "{target}"}}'
    restore = ("state", "restore", file, *given, "--config", settings)
    first = ("--state", str(tmp_path / "first"), "--record", str(tmp_path / "a" / "audit"))
    refused = tidegate(*restore, *first)
    assert refused.status != 0 and str(tmp_path / "b") in refused.err, refused.err
    assert "rights that were taken away" in refused.err
    other = tidegate(*restore, *first, "--record", str(tmp_path / "b" / "audit"))
    assert other.status == 0 and "token bob was revoked" in other.err, other.err
    tokens = tidegate("token", "list", "--json", *first[:2], *SEALED).json["tokens"]
    assert {each["name"]: each["state"] for each in tokens} == {"ann": "active", "bob": "revoked"}
    (event,) = [e for e in records(tmp_path / "first") if e.get("name") == "state.restored"]
    assert event["details"]["record"] == "followed"

    part = tidegate(*restore, "--state", str(tmp_path / "part"), *first[2:], "--without-record")
    assert part.status == 0, part.err
    with operator_terminal() as agreeing:
        words = ("passphrase", "set", "--new-passphrase-file", str(secret), *b)
        noted = tidegate(*words, terminal=agreeing)
    assert str(tmp_path / "b" / "operator.json") in noted.err, noted.err
    alone = tidegate("token", "list", *b[:2], *SEALED)
    assert alone.status != 0 and "no database is named" in alone.err, alone.err
    assert not (tmp_path / "b" / "state.db").exists()
    nowhere = tidegate(*restore, "--state", target)
    assert nowhere.status != 0 and "makes a state directory" in nowhere.err


def test_a_backup_without_a_terminal_names_the_passphrase_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert tidegate("token", "list", state=state).status == 0
    ended = tidegate("state", "backup", str(tmp_path / "f"), state=state, stdin="")
    assert ended.status != 0 and "--passphrase-file" in ended.err, ended.err


def test_a_state_of_before_is_sealed_by_a_person_and_then_needs_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    plain = ("--state", str(tmp_path / "state"))
    here = (*plain, *SEALED)
    assert tidegate("token", "create", "ann", "--scope", "readOnly", *plain).status == 0
    needed = tidegate("token", "list", *plain, "--state", target)
    assert needed.status != 0 and "needs a key" in needed.err

    refused = tidegate("token", "list", *here)
    assert refused.status != 0 and "state seal" in refused.err
    unasked = tidegate("state", "seal", *here)
    assert unasked.status != 0 and "a person must agree" in unasked.err
    assert tidegate("token", "list", *here).status != 0

    secret = tmp_path / "secret"
    secret.write_text("correct horse battery staple\n")
    OperatorPassphrase(tmp_path / "state" / "operator.json").set("correct horse battery staple")
    sealed = tidegate("state", "seal", "--passphrase-file", str(secret), *here)
    assert sealed.status == 0 and "1 rows are sealed" in sealed.err, sealed.err
    assert names(*here) == ["ann"]
    assert "state.sealed" in [each.get("name") for each in records(tmp_path / "state")]
    for key in (KEY + " no", "short"):
        monkeypatch.setenv("PGTEST_KEY", key)
        assert tidegate("token", "list", *here).status != 0
    assert "no key of it" in tidegate("token", "list", *plain).err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://gate:secret@db/tidegate", "literal"),
        ("${ENV:TIDEGATE_NOT_SET}", "is not set. Set it for the server and for each command"),
        ("${ENV:HOME}", "not one of PostgreSQL"),
    ],
)
def test_a_url_that_shows_its_password_or_leads_nowhere_is_refused(
    tmp_path: Path, url: str, said: str
) -> None:
    ended = tidegate("token", "list", "--state", str(tmp_path / "s"), "--state", url)
    assert ended.status != 0 and "gate:secret" not in ended.err
    assert said in ended.err, ended.err
