"""How an agent gets to a right query of a Datalog source by the tools of `core`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog
from support.surface_client import READER, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.source_settings import Mask

SCHEMA = {
    ":person/name": {":db/valueType": ":db.type/string", ":db/unique": ":db.unique/identity"},
    ":person/age": {":db/valueType": ":db.type/long"},
    ":person/boss": {":db/valueType": ":db.type/ref"},
    ":person/likes": {
        ":db/valueType": ":db.type/string",
        ":db/cardinality": ":db.cardinality/many",
    },
    ":city/name": {":db/valueType": ":db.type/string", ":db/fulltext": True},
}
FACTS = [
    {":db/id": -1, ":person/name": "Ada", ":person/age": 80, ":person/likes": ["tea", "maps"]},
    {":person/name": "Ben", ":person/boss": -1, ":person/likes": ["tea"]},
    {":city/name": "Lisbon"},
]


class Core:
    """An agent that uses `core`; `spoken` counts the characters that it has read and written."""

    def __init__(self, datalog: Datalog, app: App) -> None:
        self._datalog = datalog
        self._peer = Peer(app.surface("core"), READER, "2025-06-18")
        self.spoken = 0
        datalog.run(self._peer.open())

    def __call__(self, tool: str, **arguments: Any) -> str:
        result = self._datalog.run(self._peer.call(tool, **arguments))["result"]
        text = result["content"][0]["text"]
        self.spoken += len(json.dumps(arguments)) + len(text)
        return text

    def search(self, source: str, words: str) -> str:
        """What a search says once the values were read, each time waiting for them a moment."""
        shown = "ask again"
        for _ in range(100):
            spoken = self.spoken
            if "ask again" not in (shown := self("search", words=words, source=source)):
                return shown
            self.spoken = spoken
        raise AssertionError(shown)


@pytest.fixture
def path(datalog: Datalog, tmp_path: Path) -> Path:
    made = datalog.open(tmp_path / "facts", "write")
    made.ask("open_database", create=True, schema=SCHEMA)
    made.ask("transact", txData=FACTS)
    return tmp_path


@pytest.fixture
def app(datalog: Datalog, path: Path) -> Iterator[App]:
    url = f"datalevin://{path}/facts"
    config = Config(
        state=str(path / "state"),
        sources=(
            SourceSettings(name="facts", url=url),
            SourceSettings(name="masked", url=url, masks=(Mask("person.age"),)),
        ),
    )
    app = App.open(config)
    yield app
    datalog.run(app.close())


def test_a_search_shows_attributes_as_a_query_names_them_and_what_they_hold(
    datalog: Datalog, app: App
) -> None:
    core = Core(datalog, app)
    shown = core.search("facts", "who likes what")
    heading, *lines = shown.splitlines()
    lines = [line for line in lines if not line.startswith("Signs: ")]
    assert heading == "Datalog: query [:find ?e ?v :where [?e :person/age ?v]]"
    assert sorted(lines) == [
        "city(:city/name string fulltext {Lisbon}) ~1 entities",
        "person(:person/age long, :person/boss ref>person, :person/likes string many"
        " {tea,maps}, :person/name string unique) ~2 entities",
    ]
    text = '[:find ?n :where [?e :person/likes "maps"] [?e :person/name ?n]]'
    assert json.loads(core("query", sql=text, source="facts"))["rows"] == [["Ada"]]
    assert core.spoken < 500
    assert core("describe", tables=["person"], source="facts").splitlines()[1:] == [
        line for line in lines if line.startswith("person(")
    ]
    assert "nearest: person" in core("describe", tables=["persn"], source="facts")


def test_a_misspelt_attribute_is_corrected_where_it_finds_nothing(
    datalog: Datalog, app: App
) -> None:
    core = Core(datalog, app)

    def note(sql: str) -> str | None:
        return json.loads(core("query", sql=sql, source="facts")).get("note")

    assert note("[:find ?v :where [?e :person/nmae ?v]]") == (
        "no entity has :person/nmae (nearest: :person/name, :city/name)"
    )
    assert note("[:find (pull ?e [:people/likes]) :where [?e :person/name]]") == (
        "no entity has :people/likes (nearest: :person/likes)"
    )
    assert note("[:find ?e . :where [?e :zip 1]]") == "no entity has :zip"
    # What is there and finds nothing is no mistake.
    assert note('[:find ?e :where [?e :person/name "Zoe"]]') is None
    assert note("[:find ?v :where [?e :person/age ?v]]") is None
    sql = core("query", sql="SELECT name FROM person", source="facts")
    assert "asked in Datalog" in sql and "[:find" in sql


def test_a_masked_attribute_is_marked_and_none_of_its_values_is_shown(
    datalog: Datalog, app: App
) -> None:
    core = Core(datalog, app)
    shown = core.search("masked", "age")
    assert ":person/age long masked:nothing" in shown
    assert "{tea,maps}" in shown and "80" not in shown
    refused = core("query", sql="[:find ?v :where [?e :person/age ?v]]", source="masked")
    assert refused.startswith("policy.masked")
