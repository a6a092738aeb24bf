"""Tokens: who a bearer is, until when, and what of its secret is kept (nothing)."""

import re
import subprocess
import sys

import pytest

from support.eventually import HANG_S
from support.set_clock import SetClock
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import Tokens, parse_expiry
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState


@pytest.fixture
def clock():
    return SetClock(1_000_000.0)


@pytest.fixture
def state(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    yield state
    state.close()


@pytest.fixture
def tokens(state, clock):
    tokens = Tokens(state.tokens, clock)
    yield tokens
    tokens.close()


def refusal(tokens, plaintext):
    with pytest.raises(TidegateError) as caught:
        tokens.verify(plaintext)
    return caught.value.code


def test_a_token_verifies_as_the_actor_it_was_made_for(tokens, clock):
    plaintext, entry = tokens.create(
        "claude",
        TokenRights(Scope.READ_WRITE, sources=frozenset(["shop"]), tags=frozenset(["eu"])),
        expires_at=clock.now + 60,
    )
    for _ in range(2):
        actor = tokens.verify(plaintext)
        assert (actor.id, actor.name, actor.scope) == (entry.id, "claude", Scope.READ_WRITE)
        assert actor.sources == frozenset({"shop"})
        assert actor.tags == frozenset({"eu"})
        assert actor.expires_at == clock.now + 60
        assert actor.kind == "agent"


def test_a_token_of_some_tables_is_of_these_alone(tokens):
    tables = ["orders", "sales.orders", "shop:customers", "shop:sales.customers"]
    plaintext, entry = tokens.create(
        "claude", TokenRights(Scope.READ_ONLY, tables=frozenset(tables))
    )
    assert tokens.verify(plaintext).tables == entry.tables == frozenset(tables)
    other, _ = tokens.create("other", TokenRights(Scope.READ_ONLY))
    assert tokens.verify(other).tables is None
    assert tokens.holder("claude").tables == frozenset(tables)


@pytest.mark.parametrize(
    "table", ["", ".", "a.", ":a", "a.b.c.d", "a:b:c", " a", "a\nb", "a." * 99]
)
def test_what_is_no_name_of_a_table_makes_no_token(tokens, table):
    with pytest.raises(TidegateError) as caught:
        tokens.create("claude", TokenRights(Scope.READ_ONLY, tables=frozenset([table])))
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert tokens.list() == ()


def test_a_token_is_tg_and_256_random_bits_and_no_two_are_alike(tokens):
    made = {tokens.create(f"t{n}", TokenRights(Scope.READ_ONLY))[0] for n in range(50)}
    assert len(made) == 50
    assert all(re.fullmatch(r"tg_[A-Za-z0-9_-]{43}", plaintext) for plaintext in made)


def test_the_plaintext_is_nowhere_in_the_state(tokens, state, tmp_path):
    plaintext, entry = tokens.create("claude", TokenRights(Scope.READ_ONLY))
    assert entry.prefix == plaintext[:8]
    tokens.verify(plaintext)
    tokens.flush()
    state.close()
    for path in tmp_path.iterdir():
        assert plaintext.encode() not in path.read_bytes()
        assert plaintext[9:].encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "text", ["", "tg_", "x", "tg_" + "a" * 43, "tg_" + "a" * 44, "\udcff", "ä"]
)
def test_anything_else_is_not_a_token(tokens, text):
    tokens.create("claude", TokenRights(Scope.READ_ONLY))
    assert refusal(tokens, text) is Code.AUTH_INVALID


def test_a_token_expires_at_its_time_and_not_before(tokens, clock):
    plaintext, _ = tokens.create("claude", TokenRights(Scope.READ_ONLY), expires_at=clock.now + 10)
    clock.now += 9.999
    tokens.verify(plaintext)
    clock.now += 0.001
    assert refusal(tokens, plaintext) is Code.AUTH_EXPIRED


def test_a_token_cannot_be_made_expired(tokens, clock):
    with pytest.raises(TidegateError) as caught:
        tokens.create("claude", TokenRights(Scope.READ_ONLY), expires_at=clock.now)
    assert caught.value.code is Code.ARGUMENT_INVALID


def test_a_revoked_token_is_refused_from_the_next_call_on_and_stays_listed(tokens, clock):
    plaintext, entry = tokens.create("claude", TokenRights(Scope.READ_ONLY))
    tokens.verify(plaintext)
    revoked = tokens.revoke("claude")
    assert (revoked.id, revoked.revoked_at) == (entry.id, clock.now)
    assert refusal(tokens, plaintext) is Code.AUTH_INVALID
    assert [listed.revoked_at for listed in tokens.list()] == [clock.now]


def test_what_another_process_revokes_is_refused_on_the_next_call(tokens, tmp_path):
    plaintext, _ = tokens.create("claude", TokenRights(Scope.READ_ONLY))
    tokens.verify(plaintext)
    program = (
        "import sys; from pathlib import Path\n"
        "from tidegate.store.sqlite.state import SqliteState\n"
        "from tidegate.identity.tokens import Tokens\n"
        "Tokens(SqliteState(Path(sys.argv[1])).tokens).revoke('claude')\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, tmp_path / "state.db"], check=True, timeout=HANG_S
    )
    assert refusal(tokens, plaintext) is Code.AUTH_INVALID


def test_names_are_unique_among_active_tokens(tokens, clock):
    tokens.create("claude", TokenRights(Scope.READ_ONLY))
    with pytest.raises(TidegateError) as caught:
        tokens.create("claude", TokenRights(Scope.FULL_ACCESS))
    assert caught.value.code is Code.ARGUMENT_INVALID
    tokens.revoke("claude")
    tokens.create("claude", TokenRights(Scope.READ_ONLY))
    tokens.create("codex", TokenRights(Scope.READ_ONLY), expires_at=clock.now + 1)
    clock.now += 1
    plaintext, _ = tokens.create("codex", TokenRights(Scope.READ_ONLY))
    assert tokens.verify(plaintext).name == "codex"


def test_only_an_active_token_can_be_revoked(tokens):
    for _ in range(2):
        with pytest.raises(TidegateError) as caught:
            tokens.revoke("claude")
        assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize("name", ["", " ", "a\n", "\x00", "x" * 65, " a"])
def test_an_unprintable_or_endless_name_is_refused(tokens, name):
    with pytest.raises(TidegateError):
        tokens.create(name, TokenRights(Scope.READ_ONLY))


def test_the_last_use_is_noted_once_a_minute_at_most(tokens, clock):
    plaintext, _ = tokens.create("claude", TokenRights(Scope.READ_ONLY))

    def last_used():
        tokens.flush()
        return tokens.list()[0].last_used_at

    assert last_used() is None
    tokens.verify(plaintext)
    first = clock.now
    assert last_used() == first
    clock.now += 59
    tokens.verify(plaintext)
    assert last_used() == first
    clock.now += 1
    tokens.verify(plaintext)
    assert last_used() == clock.now


def test_memory_for_tokens_is_bounded(tokens, monkeypatch):
    monkeypatch.setattr("tidegate.identity.tokens._KNOWN_BOUND", 2)
    made = [tokens.create(f"t{n}", TokenRights(Scope.READ_ONLY))[0] for n in range(5)]
    for _ in range(2):
        assert [tokens.verify(plaintext).name for plaintext in made] == [f"t{n}" for n in range(5)]
    assert len(tokens._known) <= 2


def test_spans_are_read_in_their_units():
    assert parse_expiry("never", 5.0) is None
    assert parse_expiry("45s", 5.0) == 50.0
    assert parse_expiry("90m", 0.0) == 5_400
    assert parse_expiry("12h", 0.0) == 43_200
    assert parse_expiry("30d", 0.0) == 30 * 86_400
    assert parse_expiry("2w", 0.0) == 14 * 86_400


@pytest.mark.parametrize(
    "text", ["", "30", "d", "0d", "-1d", "1.5h", "30D", "30 d", "1y", "9999999d"]
)
def test_any_other_span_is_refused(text):
    with pytest.raises(TidegateError) as caught:
        parse_expiry(text, 0.0)
    assert caught.value.code is Code.ARGUMENT_INVALID
