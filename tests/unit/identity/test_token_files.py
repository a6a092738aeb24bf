"""Tokens in files: whose they are, how a change of the file counts, and what makes it unusable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.authenticator import Authenticator
from tidegate.identity.revocation import RevocationWatcher
from tidegate.identity.token_files import TokenFiles
from tidegate.identity.tokens import Tokens, check_token
from tidegate.model.actors import Actor, Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

NOW = 1_000_000_000.0
SECRET = "7Zk3-not-one-of-ours="


class Given:
    """A file of tokens, and the tokens of a state that reads it."""

    def __init__(self, path: Path, store: SqliteState) -> None:
        self.path = path
        self.notes: list[tuple[str, Mapping[str, str]]] = []
        self.files = TokenFiles(
            [path], check=check_token, note=lambda name, words: self.notes.append((name, words))
        )
        self.tokens = Tokens(store.tokens, lambda: NOW, files=self.files)

    def write(self, text: str, mode: int = 0o600) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.chmod(mode)
        fresh.replace(self.path)

    def refusal(self, bearer: str = SECRET) -> Code:
        with pytest.raises(TidegateError) as caught:
            self.tokens.verify(bearer)
        return caught.value.code


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    store = SqliteState(tmp_path / "state.db")
    given = Given(tmp_path / "tokens.yaml", store)
    yield given
    given.tokens.close()
    store.close()


def listed(name: str = "ci", secret: str = SECRET, **more: str) -> str:
    fields = {"hash": sha256(secret.encode()).hexdigest(), **more}
    return (
        "\n".join(["tokens:", f"  {name}:", *(f"    {k}: {v}" for k, v in fields.items())]) + "\n"
    )


def test_a_token_of_pgedges_form_only_reads_the_database_it_is_bound_to(given: Given) -> None:
    given.write(
        listed(
            expires_at="null",
            annotation='"for CI"',
            created_at="2025-11-20T10:00:00.123456789+01:00",
            database="shop",
        )
    )
    actor = given.tokens.verify(SECRET)
    assert (actor.name, actor.scope, actor.sources) == ("ci", Scope.READ_ONLY, frozenset({"shop"}))
    assert given.refusal(SECRET + "x") is Code.AUTH_INVALID
    assert given.refusal(sha256(SECRET.encode()).hexdigest()) is Code.AUTH_INVALID


def test_what_a_file_says_of_scope_sources_tags_and_tables_holds(given: Given) -> None:
    given.write(
        listed(scope="readWrite", sources="[a, b]", tags="[eu]", tables="[orders, 'a:x.y']")
    )
    actor = given.tokens.verify(SECRET)
    assert actor.scope is Scope.READ_WRITE
    assert actor.sources == frozenset({"a", "b"})
    assert (actor.tags, actor.tables) == (frozenset({"eu"}), frozenset({"orders", "a:x.y"}))


@pytest.mark.parametrize(
    ("expiry", "valid"),
    [
        ("2001-09-09T01:46:41Z", True),
        ("2001-09-09T01:46:39Z", False),
        ("2001-09-09T03:46:41+02:00", True),
        ("'2001-09-09T01:46:39'", False),
        ("2001-09-10", True),
        ("2001-09-09", False),
        ("''", True),
    ],
)
def test_a_token_counts_until_it_expires(given: Given, expiry: str, valid: bool) -> None:
    given.write(listed(expires_at=expiry))
    if valid:
        assert given.tokens.verify(SECRET).name == "ci"
    else:
        assert given.refusal() is Code.AUTH_EXPIRED


def test_a_change_of_the_file_counts_at_once(given: Given) -> None:
    given.write(listed())
    assert given.tokens.verify(SECRET).sources is None
    given.write(listed(database="shop"))
    assert given.tokens.verify(SECRET).sources == frozenset({"shop"})
    given.write(listed("other", "another"))
    assert given.refusal() is Code.AUTH_INVALID
    assert given.tokens.verify("another").name == "other"
    given.path.unlink()
    assert given.refusal("another") is Code.AUTH_INVALID
    given.write(listed())
    assert given.tokens.verify(SECRET).name == "ci"


def test_a_file_that_others_may_read_from_now_on_makes_no_token_valid(given: Given) -> None:
    given.write(listed())
    assert given.tokens.verify(SECRET).name == "ci"
    given.path.chmod(0o644)
    assert given.refusal() is Code.AUTH_INVALID
    assert "open to other accounts" in given.files.problems[str(given.path)]
    given.path.chmod(0o600)
    assert given.tokens.verify(SECRET).name == "ci"


def test_a_link_that_leads_to_another_file_is_a_change(given: Given, tmp_path: Path) -> None:
    """As a container's platform exchanges mounted secrets."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(listed(name, name * 20))
        (tmp_path / name).chmod(0o600)
    given.path.symlink_to(tmp_path / "one")
    assert given.tokens.verify("one" * 20).name == "one"
    fresh = tmp_path / "fresh"
    fresh.symlink_to(tmp_path / "two")
    fresh.replace(given.path)
    assert given.tokens.verify("two" * 20).name == "two"
    assert given.refusal("one" * 20) is Code.AUTH_INVALID


BROKEN: list[tuple[str, Callable[[Given], None], str]] = [
    ("open", lambda given: given.write(listed(), 0o640), "open to other accounts"),
    ("yaml", lambda given: given.write("tokens: [\n"), "cannot read"),
    ("no table", lambda given: given.write("tokens: 5"), "no names and values"),
    ("twice", lambda given: given.write(listed() + "tokens: {}\n"), "twice"),
    ("plaintext", lambda given: given.write(f"tokens: {{ci: {{hash: '{SECRET}'}}}}"), "sha-256"),
    ("key", lambda given: given.write(listed(token=SECRET)), "`token`"),
    ("other table", lambda given: given.write(listed() + "users: {}\n"), "`users`"),
    ("time", lambda given: given.write(listed(expires_at="soon")), "cannot be read"),
    ("scope", lambda given: given.write(listed(scope="everything")), "`scope`"),
    ("name", lambda given: given.write(listed("cli")), "holds no token of this kind"),
    ("tables", lambda given: given.write(listed(tables="[a.b.c.d]")), "cannot be the name"),
    ("gone", lambda given: given.path.unlink(), "no such file"),
]


@pytest.mark.parametrize(
    ("break_it", "said"), [each[1:] for each in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_a_file_that_cannot_be_used_makes_no_token_valid_and_says_why(
    given: Given, break_it: Callable[[Given], None], said: str
) -> None:
    given.write(listed())
    assert given.tokens.verify(SECRET).name == "ci"
    break_it(given)
    assert given.refusal() is Code.AUTH_INVALID
    (problem,) = given.files.problems.values()
    assert said in problem.lower()
    assert SECRET not in problem
    with pytest.raises(TidegateError) as caught:
        given.files.load()
    assert caught.value.code is Code.CONFIG_INVALID
    given.write(listed())
    assert given.tokens.verify(SECRET).name == "ci"
    assert given.files.problems == {}


async def test_what_runs_for_a_token_ends_when_it_leaves_the_file_or_may_do_less(
    given: Given,
) -> None:
    given.write(
        listed("a", "a" * 20, scope="readWrite") + listed("b", "b" * 20)[len("tokens:\n") :]
    )
    a, b = given.tokens.verify("a" * 20), given.tokens.verify("b" * 20)
    ended: list[str] = []

    class Owner:
        def actors(self) -> list[Actor]:
            return [a, b]

        def end_actors(self, ids: frozenset[str], reason: str) -> None:
            ended.extend(sorted(ids))

        def end_expired(self, now: float, reason: str) -> None:
            return

    watcher = RevocationWatcher(given.tokens, [Owner()], lambda: NOW)
    await watcher.check()
    assert ended == []
    given.write(listed("a", "a" * 20))
    await watcher.check()
    assert sorted(ended) == sorted([a.id, b.id])


def test_only_the_file_changes_its_tokens(given: Given) -> None:
    given.write(listed())
    with pytest.raises(TidegateError, match=r"is in the file"):
        given.tokens.revoke("ci")
    entry = given.tokens.find("ci")
    with pytest.raises(TidegateError, match=r"is in the file"):
        given.tokens.change(entry, entry)
    with pytest.raises(TidegateError, match=r"already an active token"):
        given.tokens.create("ci", TokenRights(Scope.READ_ONLY))
    assert [each.name for each in given.tokens.list()] == ["ci"]


def test_what_a_file_gives_is_on_record_first_and_a_log_that_fails_gives_nothing(
    given: Given,
) -> None:
    given.write(listed())
    given.tokens.verify(SECRET)
    assert given.notes == [("token_file.read", {"path": str(given.path), "tokens": "ci"})]
    failing = True

    def note(name: str, words: Mapping[str, str]) -> None:
        if failing:
            raise TidegateError(Code.AUDIT_UNAVAILABLE, "the log cannot be written")

    files = TokenFiles([given.path], check=check_token, note=note)
    digest = sha256(SECRET.encode()).digest()
    assert files.by_digest(digest) is None
    failing = False
    found = files.by_digest(digest)
    assert found is not None
    assert found.name == "ci"


async def test_beside_an_authorization_server_a_token_of_a_file_is_known_by_its_hash(
    given: Given,
) -> None:
    asked: list[str] = []

    class Verifier:
        def known(self, bearer: str) -> Actor | None:
            asked.append(bearer)
            return Actor(id="oauth", name="oauth", scope=Scope.READ_ONLY)

        async def verify(self, bearer: str) -> Actor:
            raise AssertionError

    given.write(listed())
    authenticator = Authenticator(
        given.tokens, lambda name, words: None, verifier=Verifier(), clock=lambda: NOW
    )
    first = authenticator.authenticate(SECRET, "203.0.113.7")
    assert not isinstance(first, Actor)  # it has to be loaded
    actor = await first
    assert authenticator.authenticate(SECRET, "203.0.113.7") is actor
    assert (actor.name, asked) == ("ci", [])
    authenticator.authenticate("header.payload.signature", "203.0.113.7")
    assert asked == ["header.payload.signature"]
