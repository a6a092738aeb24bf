"""The command line: every verb has a row, what runs there obeys the source, and nothing else runs.

A person who has the state directory may make tokens and answer questions; even so a statement of
theirs passes the gate, and only reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from support.authz_calls import NAMES, READS, RUNS
from support.authz_commands import REFUSED_TO_SERVE, SERVE_FLAGS, VERBS, Kind, Verb
from support.authz_engines import ENGINES, SETTINGS
from support.authz_server import CODES, Harness
from support.operator_terminal import at_operator_terminal
from support.surface_client import Peer
from tidegate.app import App
from tidegate.cli.main import main
from tidegate.cli.parser import build
from tidegate.config.model import Config
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.records import TokenRights

EFFECTS = ("read", "write", "unqualified", "destructive", "session", "admin", "several")
DENIED = ("sql.", "policy.denied")


def verbs(parser: argparse.ArgumentParser, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every verb of the parser with its own parser."""
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not actions:
        yield before.strip(), parser
    for action in actions:
        for name, inner in action.choices.items():
            yield from verbs(inner, f"{before} {name}")


@pytest.mark.needs("every product")
def test_every_verb_has_a_row() -> None:
    assert {name for name, _ in verbs(build())} == set(VERBS)


@pytest.mark.needs("every product")
def test_every_flag_of_serve_has_a_row() -> None:
    serve = dict(verbs(build()))["serve"]
    flags = {option for action in serve._actions for option in action.option_strings}
    assert flags - {"-h", "--help"} == set(SERVE_FLAGS)


@pytest.mark.parametrize("words", REFUSED_TO_SERVE)
def test_what_would_let_too_many_in_is_not_served(words: tuple[str, ...], tmp_path: Path) -> None:
    assert main([*words, "--state", str(tmp_path)]) in (2, 69, 78)


STATELESS = (["pair", "ask"], ["cloud", "check"], ["cloud", "diff"])
"""Commands that have no state directory."""


class Home:
    """A state directory with one saved source, a question that waits, and an agent's token."""

    def __init__(self, directory: Path, engine: str, setting: str) -> None:
        self.state = directory / "state"
        self.question = ""
        self.change = ""
        self.harness = Harness(directory, engine, setting)
        self.shop = self.harness.shop
        asyncio.run(self._settle(self.harness))

    async def _settle(self, harness: Harness) -> None:
        harness.app.state.sources.add(structs.replace(harness.source, ephemeral=False))
        bearer, _ = harness.app.tokens.create("agent", TokenRights(Scope.READ_WRITE))
        peer = Peer(harness.app.surface("core"), harness.app.tokens.verify(bearer))
        await peer.open()
        if harness.setting == "writes":
            text = harness.engine.statement("write", "writer")
            await peer.call("query", sql=text, source=harness.source.name)
            (question,) = harness.app.approvals.list()
            self.question = question.id
        await harness.app.close()

    def keep_change(self) -> None:
        """Have an agent make a change whose rows are kept, before the source's settings hold."""
        saved = structs.replace(self.harness.source, ephemeral=False)
        url = self.shop.url
        open_source = Source(
            *(saved.id, saved.name, url, saved.engine, saved.dialect), access="write", undo="keep"
        )

        async def work() -> None:
            app = App.open(Config(state=str(self.state)))
            assert app.state.sources.change(open_source, saved)
            agent = Actor("tok_1", "agent", Scope.READ_WRITE)
            request = Query(Statement(self.harness.engine.statement("update", "writer")))
            reply = await app.gateway.handle(Call(agent, "core", "query", request, saved.name))
            self.change = reply.payload.change
            assert app.state.sources.change(saved, open_source)
            await app.close()

        asyncio.run(work())

    def run(self, verb: Verb, sql: str = "", state: Path | None = None) -> int:
        """The status of a verb's use, at a terminal whose operator agrees to what it asks."""
        given = {
            "name": self.harness.source.name,
            "url": self.shop.url,
            "question": self.question,
            "change": self.change,
            "directory": str(self.state.parent),
        }
        words = [word.format(**given, sql=sql) for word in verb.words]
        if words[0] not in ("version", "completion") and words[:2] not in STATELESS:
            words += ["--state", str(state or self.state)]
        with at_operator_terminal():
            return main(words)

    def calls(self) -> list[dict[str, Any]]:
        """What is on record of calls, the newest last."""
        files = sorted((self.state / "audit").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [line for line in lines if line.get("phase") in ("intent", "outcome", "refusal")]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Callable[[str, str], Home]]:
    """Makes homes, and clears them away."""
    made: list[Home] = []

    def make(engine: str, setting: str) -> Home:
        made.append(Home(tmp_path, engine, setting))
        return made[-1]

    yield make
    for one in made:
        one.shop.close()


def word(record: dict[str, Any]) -> str:
    """The outcome of a call that is on record, as a word of the grids."""
    code = record.get("code", "")
    if not code:
        return "ok"
    for known, meant in CODES.items():
        if code == meant:
            return known
    return "denied" if code.startswith(DENIED) else code


PLACES = [
    (engine, setting)
    for engine, spelling in ENGINES.items()
    for setting in SETTINGS
    if (engine == "sqlite" or setting in ("readWrite", "blocked", "masked", "unmapped"))
    and (setting != "unmapped" or spelling.identities)
]


@pytest.mark.parametrize(("engine", "setting"), PLACES)
def test_a_statement_at_the_command_line_obeys_the_source(
    home: Callable[[str, str], Home], engine: str, setting: str
) -> None:
    place = home(engine, setting)
    before = place.shop.digest()
    wrong: list[str] = []
    for effect in EFFECTS:
        expected = RUNS[effect][setting]["person"]
        status = place.run(VERBS["query"], place.harness.engine.statement(effect, "person"))
        found = word(place.calls()[-1])
        if found != expected or (status == 0) != (expected == "ok"):
            wrong.append(f"{effect}: {found} and {status}, not {expected}")
    assert wrong == []
    assert place.shop.digest() == before


@pytest.mark.needs("pgedge")
@pytest.mark.parametrize("setting", sorted(set(SETTINGS) - {"unmapped"}))
def test_a_statement_given_to_ask_runs_where_it_may_read_and_changes_nothing(
    home: Callable[[str, str], Home], setting: str
) -> None:
    place = home("sqlite", setting)
    before = place.shop.digest()
    statuses = {
        effect: place.run(VERBS["ask"], place.harness.engine.statement(effect, "person"))
        for effect in EFFECTS
    }
    allowed = {effect for effect, status in statuses.items() if status == 0}
    reads = RUNS["read"][setting]["person"] == "ok"
    assert allowed == ({"read"} if reads else set())
    assert place.shop.digest() == before


@pytest.mark.parametrize("setting", sorted(set(SETTINGS) - {"unmapped"}))
def test_a_source_is_tested_only_where_it_may_be_read(
    home: Callable[[str, str], Home], setting: str
) -> None:
    place = home("sqlite", setting)
    before = place.shop.digest()
    status = place.run(VERBS["source test"])
    assert (status == 0) == (RUNS["read"][setting]["person"] == "ok")
    assert place.shop.digest() == before


def kind(wanted: Kind) -> list[str]:
    return [name for name, verb in VERBS.items() if verb.kind == wanted]


READING = {
    "tables": NAMES,
    "describe": NAMES,
    "export": READS,
    "embed": READS,
    "search check": NAMES,
    "changes": NAMES,
}


def test_every_verb_that_reads_has_its_expectations() -> None:
    assert set(kind("reads")) == set(READING)


@pytest.mark.parametrize("setting", sorted(set(SETTINGS) - {"unmapped"}))
@pytest.mark.parametrize("name", sorted(READING))
def test_what_reads_obeys_the_source(
    home: Callable[[str, str], Home], name: str, setting: str
) -> None:
    place = home("sqlite", setting)
    before = place.shop.digest()
    status = place.run(VERBS[name])
    assert (status == 0) == (READING[name][setting]["person"] == "ok")
    assert place.shop.digest() == before


@pytest.mark.parametrize("setting", ["readWrite", "blocked", "everything", "unattended"])
@pytest.mark.parametrize("name", kind("considers"))
def test_what_is_considered_is_not_run(
    home: Callable[[str, str], Home], name: str, setting: str
) -> None:
    place = home("sqlite", setting)
    before, calls = place.shop.digest(), place.calls()
    for effect in EFFECTS:
        place.run(VERBS[name], place.harness.engine.statement(effect, "person"))
    assert place.shop.digest() == before
    assert place.calls() == calls


@pytest.mark.parametrize("name", kind("keeps"))
def test_what_keeps_the_state_opens_no_source(home: Callable[[str, str], Home], name: str) -> None:
    place = home("sqlite", "writes")
    before, calls = place.shop.digest(), place.calls()
    assert place.run(VERBS[name]) == VERBS[name].status
    assert place.shop.digest() == before
    assert place.calls() == calls


UNDOES = (
    *("readWrite", "administered", "never", "asks", "writes", "denies", "trusts"),
    *("guarded", "unattended", "inbox"),
)
UNDONE = dict.fromkeys(UNDOES, 0) | {
    "readOnly": 77,
    "blocked": 66,
    "locked": 77,
    "masked": 77,
    "everything": 77,
}
"""How `undo` ends. A closed source shows no change. Where a person approves all reads as well, the
rows are not shown yet."""


def test_every_verb_that_takes_back_has_its_expectations() -> None:
    assert kind("undoes") == ["undo"]
    assert set(UNDONE) == set(SETTINGS) - {"unmapped"}


@pytest.mark.parametrize("setting", sorted(UNDONE))
def test_a_change_is_taken_back_where_the_source_admits_changes(
    home: Callable[[str, str], Home], setting: str
) -> None:
    place = home("sqlite", setting)
    original = place.harness.shop.digest_of_rows()
    place.keep_change()
    changed = place.harness.shop.digest_of_rows()
    assert changed != original
    assert place.run(VERBS["undo"]) == UNDONE[setting]
    after = place.harness.shop.digest_of_rows()
    assert after == (original if UNDONE[setting] == 0 else changed)


@pytest.mark.parametrize("name", kind("connects"))
def test_what_tries_a_source_runs_nothing_there(
    home: Callable[[str, str], Home], name: str
) -> None:
    place = home("sqlite", "writes")
    before, calls = place.shop.digest(), place.calls()
    assert place.run(VERBS[name]) == VERBS[name].status
    assert place.shop.digest() == before
    tried = [call for call in place.calls() if call not in calls]
    assert tried
    for call in tried:
        assert "sql" not in call and "connect" in json.dumps(call), call


@pytest.mark.parametrize(
    "name", ["query", "source test", "explain", "judge", "source remove", "token revoke",
             "approvals show", "approvals allow", "approvals deny"]
)  # fmt: skip
def test_who_has_another_state_directory_reaches_nothing(
    home: Callable[[str, str], Home], name: str, tmp_path: Path
) -> None:
    place = home("sqlite", "writes")
    before, calls = place.shop.digest(), place.calls()
    assert place.run(VERBS[name], "SELECT 1", tmp_path / "other") != 0
    assert place.run(VERBS["source list"]) == 0
    assert place.shop.digest() == before
    assert place.calls() == calls


def test_what_a_person_allowed_is_run_by_no_other_than_who_asked(
    home: Callable[[str, str], Home],
) -> None:
    place = home("sqlite", "writes")
    before = place.shop.digest()
    assert place.run(VERBS["approvals allow"]) == 0
    assert place.run(VERBS["query"], place.harness.engine.statement("write", "writer")) == 77
    assert place.shop.digest() == before
