"""`state backup` while a gate serves, and `state restore` elsewhere: what is there again, what has
ended, and that a right that was taken away afterwards stays away."""

from __future__ import annotations

import asyncio
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import structs

from support.audit_records import records
from support.command_line import Ended, tidegate
from support.operator_terminal import operator_terminal
from tidegate.app import App
from tidegate.audit.verify import verify
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.identity.operators import RoleGrant, roles_text
from tidegate.model.actors import Scope
from tidegate.store.records import ApprovalBounds, PendingApproval, Subject, TokenRights

PASSPHRASE = "correct horse 1"


class Place:
    """A state, its backup, and where that is restored."""

    def __init__(self, folder: Path) -> None:
        self.state, self.other = folder / "state", folder / "other"
        self.file, self.secret = folder / "gate.backup", folder / "passphrase"
        self.secret.write_text(PASSPHRASE + "\n")
        self.plain: dict[str, str] = {}

    def at(self, work: Callable[[App], Any], state: Path | None = None) -> Any:
        """Do something with the application on a state."""
        app = App.open(Config(state=str(state or self.state)))

        async def whole() -> Any:
            try:
                return work(app)
            finally:
                await app.close()

        return asyncio.run(whole())

    def run(self, *words: str, state: Path | None = None) -> Ended:
        return tidegate(*words, "--passphrase-file", str(self.secret), state=state or self.state)

    def backup(self) -> Ended:
        return self.run("state", "backup", str(self.file))

    def restore(self, *words: str) -> Ended:
        return self.run("state", "restore", str(self.file), *words, state=self.other)

    def make_token(self, app: App, name: str, **rights: Any) -> None:
        scope = rights.pop("scope", Scope.READ_WRITE)
        self.plain[name], _ = app.tokens.create(name, TokenRights(scope, None, **rights))

    def opens(self, name: str) -> bool:
        """Whether a token opens the restored gate."""

        def look(app: App) -> bool:
            try:
                app.tokens.verify(self.plain[name])
            except TidegateError:
                return False
            return True

        return bool(self.at(look, self.other))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("made")
    made = Place(folder)

    def fill(app: App) -> None:
        for name in ("kept", "revoked", "narrowed"):
            made.make_token(app, name)
        roles = RoleGrant("admin"), RoleGrant("viewer")
        for name in ("ada", "bob", "cyd"):
            app.operators.add(name, "correct horse 2", roles, "cli")

    made.at(fill)
    for name in ("shop", "stock"):
        apsw.Connection(f"{folder}/{name}.db").close()
        url = f"sqlite:///{folder}/{name}.db"
        ended = tidegate("source", "add", name, url, "--anyway", state=made.state)
        assert ended.status == 0, ended.err
    return made


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Place:
    copied = Place(tmp_path)
    shutil.copytree(made.state, copied.state)
    copied.plain = dict(made.plain)
    return copied


def question(id: str, now: float) -> PendingApproval:
    subject = Subject(
        *("kept", "x/1", "core", "query", "shop", "shop-1", "UPDATE t SET n = 1", "write"),
        *("source.agents", ""),
    )
    return PendingApproval(id, f"digest-{id}", "pending", "tok_1", subject, now)


def test_all_is_there_again_in_another_directory(place: Place, tmp_path: Path) -> None:
    ended = place.backup()
    assert ended.status == 0, ended.err
    assert stat.S_IMODE(place.file.stat().st_mode) == 0o600
    written = place.file.read_bytes()
    for secret in (PASSPHRASE, "sqlite", "kept"):
        assert secret.encode() not in written
    # Three letters stand somewhere in ciphertext by chance, but not in each of two.
    place.file.unlink()
    assert place.backup().status == 0
    assert b"ada" not in written or b"ada" not in place.file.read_bytes()
    assert place.restore("--without-record").status == 0
    assert place.opens("kept")
    names = place.at(
        lambda app: (
            [each.name for each in app.connections.sources()],
            [each.name for each in app.operators.list()],
        ),
        place.other,
    )
    assert names == (["shop", "stock"], ["ada", "bob", "cyd"])
    for path in place.other.rglob("*"):
        if path.is_file() and path.suffix != ".pub":
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert verify(place.other / "audit", place.other / "audit-key").intact
    (event,) = [each for each in records(place.other) if each.get("name") == "state.restored"]
    assert event["details"]["record"] == "not known"


def test_a_backup_is_made_while_others_write(place: Place) -> None:
    def work(app: App) -> None:
        place.make_token(app, "before")
        assert place.backup().status == 0
        place.make_token(app, "after")

    place.at(work)
    assert place.restore("--without-record").status == 0
    assert (place.opens("before"), place.opens("after")) == (True, False)


def test_sessions_links_questions_and_grants_of_the_former_life_end(place: Place) -> None:
    def fill(app: App) -> None:
        app.operators.make_link("ada", "cli")
        app.operators.sign_in("bob", "correct horse 2", "", "")
        now = time.time()
        bounds = ApprovalBounds(now - 60, now - 60, 50, 50, latest=now + 60)
        for id in ("one", "two"):
            app.state.approvals.admit(question(id, now), bounds)
        assert app.state.approvals.resolve("one", "allowed", "operator:ada", "", now)

    place.at(fill)
    place.backup()
    place.restore("--without-record")
    states = place.at(
        lambda app: (
            app.state.operators.sessions(),
            [each.state for each in app.state.approvals.list()],
        ),
        place.other,
    )
    assert states == ((), ["expired", "expired"])


def test_a_right_that_was_taken_away_afterwards_stays_away(place: Place, tmp_path: Path) -> None:
    place.backup()

    def take(app: App) -> None:
        app.tokens.revoke("revoked")
        entry = next(each for each in app.tokens.list() if each.name == "narrowed")
        app.tokens.change(structs.replace(entry, scope=Scope.READ_ONLY), entry)
        app.operators.remove("bob", "cli")
        app.operators.set_roles("cyd", (RoleGrant("viewer"),), "cli")
        app.operators.set_passphrase("ada", "correct horse 3", "cli")

    place.at(take)
    assert tidegate("source", "remove", "stock", state=place.state).status == 0
    record = tmp_path / "copied"
    shutil.copytree(place.state / "audit", record)
    ended = place.restore("--record", str(record))
    assert ended.status == 0, ended.err
    (event,) = [each for each in records(place.state) if each.get("name") == "state.backed_up"]
    assert event["details"]["file"] == str(place.file)
    for word in ("token revoked", "token narrowed", "operator bob", "operator cyd", "source stock"):
        assert word in ended.err, ended.err
    assert [place.opens(name) for name in ("kept", "revoked", "narrowed")] == [True, False, False]

    def look(app: App) -> Any:
        operators = {each.name: roles_text(each.roles) for each in app.operators.list()}
        with pytest.raises(TidegateError):
            app.operators.sign_in("ada", "correct horse 2", "", "")
        return operators, [each.name for each in app.connections.sources()]

    assert place.at(look, place.other) == ({"ada": "admin; viewer", "cyd": "viewer"}, ["shop"])


def test_without_the_record_a_person_is_asked(place: Place) -> None:
    place.backup()
    ended = place.restore()
    assert ended.status != 0
    assert "--record" in ended.err
    words = ("state", "restore", str(place.file), "--passphrase-file", str(place.secret))
    with operator_terminal(agrees=False) as terminal:
        refused = tidegate(*words, state=place.other, terminal=terminal)
    assert refused.status != 0
    assert not place.other.exists()
    with operator_terminal() as terminal:
        agreed = tidegate(*words, state=place.other, terminal=terminal)
    assert agreed.status == 0, agreed.err
    assert place.opens("revoked")


def test_a_record_that_was_cut_or_is_anothers_is_refused(place: Place, tmp_path: Path) -> None:
    place.backup()
    place.at(lambda app: app.tokens.revoke("revoked"))
    cut = tmp_path / "cut"
    shutil.copytree(place.state / "audit", cut)
    (segment,) = cut.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(each for each in lines if b"token.revoked" not in each))
    for record in (cut, tmp_path / "nowhere"):
        ended = place.restore("--record", str(record))
        assert ended.status != 0
        assert "record cannot be used" in ended.err
        assert not place.other.exists()


def test_a_record_that_does_not_reach_back_to_the_backup_is_refused(
    place: Place, tmp_path: Path
) -> None:
    place.backup()
    begun = tmp_path / "begun"
    shutil.copytree(place.state / "audit", begun)
    for segment in begun.glob("*.jsonl"):
        segment.unlink()
    ended = place.restore("--record", str(begun))
    assert (ended.status != 0, "record cannot be used" in ended.err) == (True, True)


def test_nothing_is_kept_of_a_backup_that_cannot_be_read(place: Place, tmp_path: Path) -> None:
    place.backup()
    whole = place.file.read_bytes()
    place.file.write_bytes(whole[:-1])
    assert place.restore("--without-record").status != 0
    place.file.write_bytes(whole)
    place.secret.write_text("correct horse 9\n")
    ended = place.restore("--without-record")
    assert (ended.status != 0, "passphrase" in ended.err) == (True, True)
    left = [each.name for each in tmp_path.iterdir() if each.name.startswith((".", "oth"))]
    assert left == []


def test_no_file_and_no_state_is_written_over(place: Place) -> None:
    place.backup()
    assert place.backup().status != 0
    place.other.mkdir()
    (place.other / "x").touch()
    assert place.restore("--without-record").status != 0
    assert [each.name for each in place.other.iterdir()] == ["x"]


def test_kept_passwords_are_found_in_the_new_directory(place: Place) -> None:
    passwords = place.state / "passwords"
    passwords.mkdir(mode=0o700)
    (passwords / "pg.app").write_text("hunter2")
    (passwords / "pg.app").chmod(0o600)
    url = f"postgres://app:${{FILE:{passwords}/pg.app}}@127.0.0.1/shop"
    ended = tidegate("source", "add", "pg", url, "--anyway", state=place.state)
    assert ended.status == 0, ended.err
    place.backup()
    assert b"hunter2" not in place.file.read_bytes()
    place.restore("--without-record")
    urls = place.at(
        lambda app: {each.name: each.url for each in app.connections.sources()}, place.other
    )
    found = urls["pg"]
    assert f"${{FILE:{place.other}/passwords/pg.app}}" in found
    assert (place.other / "passwords" / "pg.app").read_text() == "hunter2"
