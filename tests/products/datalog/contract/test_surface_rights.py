"""Who may do what at the surface `datalog`: every tool, by caller and setting of the source.

The sources are one directory under several settings. After the refusals its facts are counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from products.datalog.contract.test_surface_session import Client, Gate
from support.datalog import Datalog
from support.surface_client import READER, WRITER
from tidegate.app import App
from tidegate.approvals.place import OPENED
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.source_settings import Mask
from tidegate.products.datalog.surface.tools import SPECS

OFF, ASK, MASKED = ":writes-disabled", ":approval-needed", ":policy-masked"

SETTINGS: dict[str, dict[str, Any]] = {
    "reads": {},
    "writes": {"access": "write"},
    "asks": {"access": "write", "approval_for": "writes"},
    "masked": {"access": "write", "masks": (Mask("people.name"),)},
}
ROWS: dict[str, dict[str, Any]] = {
    "query": {"query": "[:find ?a . :where [_ :age ?a]]"},
    "pull": {"selector": [":age"], "eid": 1},
    "pull_many": {"selector": [":age"], "eids": [1]},
    "entity": {"eid": 1},
    "datoms": {"index": "ave", "c1": ":age"},
    "search_datoms": {"a": ":age"},
    "count_datoms": {"a": ":age"},
    "fulltext_datoms": {"query": "red"},
    "transact": {"txData": [[":db/add", 1, ":age", 81]]},
    "kv_get": {"dbi": "notes", "key": 1},
    "kv_range": {"dbi": "notes", "keyRange": [":all"]},
    "kv_transact": {"dbi": "notes", "txs": [[":put", 1, 2]]},
    "search_documents": {"query": "red"},
    "document_count": {},
    "document_indexed": {"docRef": 1},
    "add_document": {"docRef": 1, "docText": "red"},
    "remove_document": {"docRef": 1},
    "clear_documents": {},
    "vector_search": {"queryVector": [1, 0]},
    "vector_index_info": {},
    "vector_indexed": {"vectorRef": 1},
    "add_vector": {"vectorRef": 1, "vectorData": [1, 0]},
    "remove_vector": {"vectorRef": 1},
}
NAMELESS = frozenset(
    {"entity", "fulltext_datoms"}
    | {name for name in ROWS if "document" in name or name.startswith(("vector", "add_v", "rem"))}
)
"""What may show attributes that it does not name, so that a mask on any refuses it."""

WRITING = frozenset(spec.name for spec in SPECS if spec.writes)


def expected(tool: str, setting: str, writes: bool) -> str:
    """The code of the document's rules and the policy's; `ok` for none."""
    if tool in WRITING and (not writes or setting == "reads"):
        return OFF
    if setting == "masked" and tool in NAMELESS:
        return MASKED
    return ASK if tool in WRITING and setting == "asks" else "ok"


PLACES = {":dimensions": 2, ":domain": "places"}


def ids_of(call: Client, source: str) -> dict[str, str]:
    """An id of each kind."""
    kv = call("open_kv", dir=source)["kv"]
    return {
        "database": call("open_database", dir=source)["database"],
        "kv": kv,
        "searchIndex": call("open_search_index", kv=kv, opts={":domain": "notes"})["searchIndex"],
        "vectorIndex": call("open_vector_index", kv=kv, opts=PLACES)["vectorIndex"],
    }


def outcome(call: Client, tool: str, ids: dict[str, str]) -> str:
    name = next(
        name for name in ids
        if f"{name}:string*" in next(spec.arguments for spec in SPECS if spec.name == tool).split()
    )  # fmt: skip
    reply = call.reply(tool, **{name: ids[name]}, **ROWS[tool])
    if reply.get("code") == ASK:
        assert f"The question waits in {OPENED}." in str(reply)
    return reply.get("code", "ok")


def test_every_tool_is_allowed_and_refused_by_caller_and_setting(
    datalog: Datalog, tmp_path: Path
) -> None:
    opening = {"api_info"} | {
        f"{verb}_{kind}"
        for verb in ("open", "close")
        for kind in ("database", "kv", "search_index", "vector_index")
    }
    assert ROWS.keys() | opening == {spec.name for spec in SPECS}
    datalog.make(tmp_path / "facts")
    url = f"datalevin://{tmp_path}/facts"
    config = Config(
        state=str(tmp_path / "state"),
        sources=tuple(SourceSettings(name=name, url=url, **more)
                      for name, more in SETTINGS.items()),
    )  # fmt: skip
    app = App.open(config)
    try:
        gate = Gate(datalog, app)
        writer = gate.client(WRITER)
        ids = ids_of(writer, "writes")
        for tool in ("kv_transact", "add_document", "add_vector"):  # so that all of it is there
            assert outcome(writer, tool, ids) == "ok", tool
        wrong: list[str] = []
        for setting in ("reads", "asks", "masked", "writes"):
            for actor in (READER, WRITER):
                call = gate.client(actor)
                given = ids_of(call, setting)
                for tool in ROWS:
                    found = outcome(call, tool, given)
                    wanted = expected(tool, setting, actor is WRITER)
                    if found != wanted:
                        wrong.append(f"{setting} {actor.name} {tool}: {found}, not {wanted}")
                read = call.ask("resources/read", uri=f"datalevin://{setting}/schema")
                marked = '"masked":"nothing"' in read["contents"][0]["text"]
                assert marked is (setting == "masked"), setting
                counted = call.reply("count_datoms", database=given["database"], a=":age")
                assert counted.get("result", 4) == 4
        assert not wrong, wrong
    finally:
        datalog.run(app.close())
