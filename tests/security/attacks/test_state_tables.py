"""Who can write the tables of the state, and no key, gets nothing by it, and people are told."""

import asyncio

import apsw
import pytest

from support.audit_records import records
from support.eventually import wait_until
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.copies import begin_again, copy_state

KEY = "${ENV:PGTEST_KEY}"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("PGTEST_KEY", "a key of the gates in this test, long enough")


def use(directory, work, key=KEY):
    """Do something with a gate on a state directory."""
    app = App.open(Config(state=str(directory), state_key=key))

    async def whole():
        try:
            return work(app)
        finally:
            await app.close()

    return asyncio.run(whole())


def tamper(directory, sql):
    connection = apsw.Connection(str(directory / "state.db"))
    connection.execute(sql)
    connection.close()


def test_a_token_that_was_widened_in_the_table_opens_nothing_and_is_on_record(tmp_path):
    state = tmp_path / "state"

    def attack(app):
        plain, _ = app.tokens.create("ann", TokenRights(Scope.READ_ONLY))
        tamper(state, "UPDATE tokens SET scope = 'fullAccess'")
        with pytest.raises(TidegateError) as refused:
            app.tokens.verify(plain)
        said = app.conditions.degraded()["state"]
        assert "`tokens`" in said and "past the gates" in said
        wait_until(
            lambda: "state.row_refused" in [each.get("name") for each in records(state)],
            "the refusal to be on record",
        )
        return refused.value.code

    assert use(state, attack) is Code.AUTH_INVALID


def test_a_key_is_named_by_a_reference(tmp_path):
    with pytest.raises(TidegateError) as refused:
        use(tmp_path / "state", lambda app: None, "a key that stands in the settings itself")
    assert refused.value.code is Code.CONFIG_INVALID


def test_gates_with_one_key_have_the_same_secrets_and_no_file_of_them(tmp_path, monkeypatch):
    def secrets(app):
        return [app.secrets.read(name) for name in ("mask", "undo", "staged")]

    one, two = (use(tmp_path / name, secrets) for name in ("a", "b"))
    assert one == two and len(set(one)) == 3
    assert not list((tmp_path / "a").glob("*.key"))
    monkeypatch.setenv("PGTEST_KEY", "another key of the gates in this test, as long")
    assert not set(one) & set(use(tmp_path / "c", secrets))


def test_a_backup_that_was_changed_is_not_restored(tmp_path):
    state, copy = tmp_path / "state", tmp_path / "copy"
    copy.mkdir()
    use(state, lambda app: app.tokens.create("ann", TokenRights(Scope.READ_ONLY)))
    copy_state(state / "state.db", copy / "state.db")
    tamper(copy, "UPDATE tokens SET scope = 'fullAccess'")
    key = use(state, lambda app: app.cluster_key)
    with pytest.raises(TidegateError, match="past the gates"):
        begin_again(copy / "state.db", 5.0, str(state), str(copy), key)
    tamper(copy, "UPDATE tokens SET scope = 'readOnly'")
    tamper(copy, "INSERT INTO answers VALUES ('h', 'ann', 's1', 'how many', 'SELECT 1', 1.0)")
    with pytest.raises(TidegateError, match="`answers`"):
        begin_again(copy / "state.db", 5.0, str(state), str(copy), key)
    tamper(copy, "DELETE FROM answers")
    begin_again(copy / "state.db", 5.0, str(state), str(copy), key)
    assert use(copy, lambda app: [each.name for each in app.tokens.list()]) == ["ann"]
