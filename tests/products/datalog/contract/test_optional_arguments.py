"""Optional arguments that frameworks send as nothing, at the tools of the surface `datalog`.

Their answers stay those of the call without the argument. A value that may be the text of a fact is
refused in a form that may be either.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.datalog.contract.test_surface_rights import PLACES, ROWS, WRITING
from products.datalog.contract.test_surface_session import Client, Gate
from support.datalog import Datalog
from support.optional_arguments import NOTHINGS, lasting, optional_of
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings

ANY = frozenset({"e", "a", "c1", "txMeta"})
"""Listed as texts, since vendors of models take one type, and never a text that means nothing."""


@pytest.fixture
def call(datalog: Datalog, tmp_path: Path) -> Iterator[Client]:
    made = datalog.make(tmp_path / "facts")
    made.ask("transact", txData=[{":name": ""}, {":name": "null"}])
    url = f"datalevin://{tmp_path}/facts"
    source = SourceSettings(name="family", url=url, access="write")
    app = App.open(Config(state=str(tmp_path / "state"), sources=(source,)))
    yield Gate(datalog, app).client()
    datalog.run(app.close())


def ids_of(call: Client) -> dict[str, str]:
    """An id of each kind, of what has something in it."""
    kv = call("open_kv", dir="family")["kv"]
    ids = {
        "database": call("open_database", dir="family")["database"],
        "kv": kv,
        "searchIndex": call("open_search_index", kv=kv, opts={":domain": "notes"})["searchIndex"],
        "vectorIndex": call("open_vector_index", kv=kv, opts=PLACES)["vectorIndex"],
    }
    call("kv_transact", kv=kv, dbi="notes", txs=[[":put", 1, 2]])
    call("add_document", searchIndex=ids["searchIndex"], docRef=1, docText="red")
    call("add_vector", vectorIndex=ids["vectorIndex"], vectorRef=1, vectorData=[1, 0])
    return ids


def test_what_is_sent_as_nothing_changes_no_answer(call: Client) -> None:
    ids = ids_of(call)
    opening = {
        "open_database": {"dir": "family"},
        "open_kv": {"dir": "family"},
        "open_search_index": {"opts": {":domain": "notes"}},
        "api_info": {},
    }
    wrong: list[str] = []
    for tool in call.ask("tools/list")["tools"]:
        name = tool["name"].removeprefix("datalevin_")
        row = {**ROWS, **opening}.get(name)
        if row is None or name in ("clear_documents", "remove_document", "remove_vector"):
            continue
        required = tool["inputSchema"].get("required", ())
        row = {each: ids[each] for each in required if each in ids} | row
        meant = answer(call, name, row)
        for argument, forms in optional_of(tool["inputSchema"]):
            if argument in row:
                continue
            for form in NOTHINGS if argument in ANY else forms:
                said = answer(call, name, row | {argument: form})
                if said != meant:
                    wrong.append(f"{name} {argument}={form!r}: {said} not {meant}")
    assert wrong == []


def answer(call: Client, name: str, arguments: dict[str, Any]) -> str:
    shown = call.reply(name, **arguments)
    if name in WRITING:
        shown = {each: shown[each] for each in shown if each != "result"}  # a transaction's number
    return lasting(shown)


@pytest.mark.parametrize("text", ["", "null"])
def test_a_value_that_may_be_none_is_asked_for_in_one_way(call: Client, text: str) -> None:
    database = call("open_database", dir="family")["database"]
    ways: list[tuple[str, dict[str, Any], str]] = [
        ("search_datoms", {"a": ":name"}, "v"),
        ("count_datoms", {"a": ":name"}, "v"),
        ("count_datoms", {}, "v"),
        ("datoms", {"index": "ave", "c1": ":name"}, "c2"),
        ("datoms", {"index": "eav", "c1": 5, "c2": ":name"}, "c3"),
    ]
    for tool, given, value in ways:
        refused = call.reply(tool, database=database, **given, **{value: text})
        assert refused["code"] == ":invalid-params"
        assert f"Leave {value} out" in refused["error"]
        tagged = f'{{"~str": "{text}"}}'
        assert tagged in refused["error"]
        for written in (tagged, {"~str": text}):
            found = call(tool, database=database, **given, **{value: written})
            if isinstance(found, int):
                assert found == 1
            elif given.get("index") == "eav":
                assert {each["v"] for each in found} == ({""} if text == "" else set())
            else:
                assert [each["v"] for each in found] == [text]


@pytest.mark.parametrize("nothing", ["", "null"])
@pytest.mark.parametrize(
    ("index", "given"), [("eav", {"c1": 1}), ("ave", {"c1": ":name"}), ("ave", {})]
)
def test_components_that_are_nothing_end_those_that_are_given(
    call: Client, index: str, given: dict[str, Any], nothing: str
) -> None:
    database = call("open_database", dir="family")["database"]
    meant = call("datoms", database=database, index=index, **given)
    rest = {name: nothing for name in ("c1", "c2", "c3") if name not in given}
    if index == "ave" and given:
        del rest["c2"]  # a value, which is refused in this form
    assert call("datoms", database=database, index=index, **given, **rest) == meant


@pytest.mark.parametrize("form", ["2", 2.0, "2.0"])
def test_numbers_may_come_as_texts(call: Client, form: Any) -> None:
    database = call("open_database", dir="family", clientOpts={":pool-size": form})["database"]
    found = call("datoms", database=database, index="ave", c1=":age", limit=form, offset="1")
    assert [each["v"] for each in found] == [30, 52]
    given = f'{{":top": "{form}"}}' if isinstance(form, str) else {":top": form, ":display": None}
    assert len(call("fulltext_datoms", database=database, query="red", opts=given)) == 1
