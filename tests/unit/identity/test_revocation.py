"""The revocation watcher: what a revoked or expired token holds open ends, whoever revoked it."""

import pytest

from tidegate.identity.revocation import Blindness, RevocationWatcher
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState


class Ward:
    """Holds things open for actors; those that were ended are gone."""

    def __init__(self, *actors):
        self.open = list(actors)

    def actors(self):
        return self.open

    def end_actors(self, ids, reason):
        self.open = [actor for actor in self.open if actor.id not in ids]

    def end_expired(self, now, reason):
        self.open = [a for a in self.open if a.expires_at is None or now < a.expires_at]


@pytest.fixture
def opened(tmp_path):
    made = []

    def open_tokens(clock=lambda: 1000.0):
        store = SqliteState(tmp_path / "state.db")
        tokens = Tokens(store.tokens, clock)
        made.append((tokens, store))
        return tokens

    yield open_tokens
    for tokens, store in made:
        tokens.close()
        store.close()


async def test_what_a_token_holds_ends_when_another_process_revokes_it(opened):
    here, elsewhere = opened(), opened()
    kept = here.verify(here.create("kept", TokenRights(Scope.READ_ONLY))[0])
    lost = here.verify(here.create("lost", TokenRights(Scope.READ_ONLY))[0])
    owner = Ward(kept, lost, lost)
    watcher = RevocationWatcher(here, [owner], lambda: 1000.0)
    await watcher.check()
    assert owner.open == [kept, lost, lost]
    elsewhere.revoke("lost")
    await watcher.check()
    assert owner.open == [kept]


async def test_a_token_revoked_before_the_first_look_is_seen_too(opened):
    tokens = opened()
    lost = tokens.verify(tokens.create("lost", TokenRights(Scope.READ_ONLY))[0])
    tokens.revoke("lost")
    owner = Ward(lost)
    await RevocationWatcher(tokens, [owner], lambda: 1000.0).check()
    assert owner.open == []


async def test_what_a_token_holds_ends_at_the_very_moment_of_its_expiry(opened):
    now = [1000.0]
    tokens = opened(lambda: now[0])
    brief = tokens.verify(
        tokens.create("brief", TokenRights(Scope.READ_ONLY), expires_at=1060.0)[0]
    )
    owner = Ward(brief)
    watcher = RevocationWatcher(tokens, [owner], lambda: now[0])
    now[0] = 1059.9
    await watcher.check()
    assert owner.open == [brief]
    now[0] = 1060.0
    await watcher.check()
    assert owner.open == []


async def test_a_store_that_fails_does_not_end_the_vigil(opened):
    tokens = opened()
    owner = Ward(
        tokens.verify(tokens.create("brief", TokenRights(Scope.READ_ONLY), expires_at=1060.0)[0])
    )
    watcher = RevocationWatcher(tokens, [owner], lambda: 1060.0)
    tokens._store._rights.close()
    await watcher.check()
    assert owner.open == []


async def test_what_runs_ends_when_the_state_was_not_seen_for_longer_than_the_grace(opened):
    ended, age_s = [], [9.9]
    blindness = Blindness(lambda: age_s[0], 10.0, lambda: ended.append("calls"))
    watcher = RevocationWatcher(opened(), [], lambda: 1000.0, blindness=blindness)
    await watcher.check()
    assert ended == []
    age_s[0] = 10.1
    await watcher.check()
    assert ended == ["calls"]
