"""Who may do what at cloud providers: every tool x actor x mode x class of statement. The provider
counts what is written to it, and what is not `ok` writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cloud_surface import (
    DELETE,
    EXEC,
    INSERT,
    REPLACE,
    SELECT,
    UPDATE,
    CloudClient,
    opened,
    recorded,
    running_desk,
)
from tidegate.app import App
from tidegate.identity.builtin_actors import ANONYMOUS, stdio
from tidegate.model.actors import Actor, Scope
from tidegate.store.records import TokenRights

TOKENS: dict[str, TokenRights] = {
    "reader": TokenRights(Scope.READ_ONLY),
    "writer": TokenRights(Scope.READ_WRITE),
    "owner": TokenRights(Scope.FULL_ACCESS),
    "resource": TokenRights(Scope.READ_WRITE, tables=frozenset({"desk.tickets.tickets"})),
    "service": TokenRights(Scope.READ_WRITE, tables=frozenset({"apis:desk.tickets.*"})),
    "elsewhere": TokenRights(Scope.READ_WRITE, tables=frozenset({"desk.teams.teams", "other.*"})),
    "foreign": TokenRights(Scope.FULL_ACCESS, sources=frozenset({"elsewhere"})),
}
STATEMENTS = {
    "select": SELECT,
    "insert": INSERT,
    "update": UPDATE,
    "replace": REPLACE,
    "delete": DELETE,
    "exec": EXEC,
    "explain": f"EXPLAIN {DELETE}",
    "view": "CREATE VIEW v AS SELECT 1",
    "several": f"{SELECT}; {DELETE}",
}
CHANGES = frozenset({"insert", "update", "replace", "delete", "exec"})
RUNNERS = ("run_select_query", "run_mutation_query", "run_lifecycle_operation")
PLACE = {"provider": "desk", "service": "tickets", "resource": "tickets"}
TOOLS: dict[str, dict[str, Any]] = {
    "server_info": {},
    "list_providers": {},
    "list_services": {"provider": "desk"},
    "list_resources": {"provider": "desk", "service": "tickets"},
    "list_methods": PLACE,
    "describe_resource": PLACE,
    "describe_method": {**PLACE, "method": "get"},
    "list_registry": {},
    "pull_provider": {"provider": "desk"},
    "validate_select_query": {"sql": SELECT},
    "search_resources": {"words": "tickets"},
    "reload_credentials": {},
}


def grid(text: str) -> dict[str, dict[str, str]]:
    header, *lines = [line.split() for line in text.strip().splitlines()]
    return {name: dict(zip(header, words, strict=True)) for name, *words in lines}


# ok: it runs; ro: the mode refuses; ask: a person must approve; scope: the token may not change;
# table: not on the token's list; source: no such source for this caller; not: no such statement;
# local: the source has no registry.
READ_ONLY = grid("""
          reader writer owner  resource service elsewhere foreign anon   stdio
select    ok     ok     ok     ok       ok      table     source  ok     ok
insert    ro     ro     ro     ro       ro      ro        source  ro     ro
update    ro     ro     ro     ro       ro      ro        source  ro     ro
replace   ro     ro     ro     ro       ro      ro        source  ro     ro
delete    ro     ro     ro     ro       ro      ro        source  ro     ro
exec      ro     ro     ro     ro       ro      ro        source  ro     ro
explain   ok     ok     ok     ok       ok      ok        source  ok     ok
view      not    not    not    not      not     not       source  not    not
several   not    not    not    not      not     not       source  not    not
""")
SAFE = grid("""
          reader writer owner  resource service elsewhere foreign anon   stdio
select    ok     ok     ok     ok       ok      table     source  ok     ok
insert    scope  ask    ask    ask      ask     table     source  scope  ask
update    scope  ask    ask    ask      ask     table     source  scope  ask
replace   scope  ask    ask    ask      ask     table     source  scope  ask
delete    scope  ask    ask    ask      ask     table     source  scope  ask
exec      scope  ask    ask    ask      ask     table     source  scope  ask
explain   ok     ok     ok     ok       ok      ok        source  ok     ok
view      not    not    not    not      not     not       source  not    not
several   not    not    not    not      not     not       source  not    not
""")
DELETE_SAFE = grid("""
          reader writer owner  resource service elsewhere foreign anon   stdio
select    ok     ok     ok     ok       ok      table     source  ok     ok
insert    scope  ok     ok     ok       ok      table     source  scope  ok
update    scope  ok     ok     ok       ok      table     source  scope  ok
replace   scope  ok     ok     ok       ok      table     source  scope  ok
delete    scope  ask    ask    ask      ask     table     source  scope  ask
exec      scope  ask    ask    ask      ask     table     source  scope  ask
explain   ok     ok     ok     ok       ok      ok        source  ok     ok
view      not    not    not    not      not     not       source  not    not
several   not    not    not    not      not     not       source  not    not
""")
FULL_ACCESS = grid("""
          reader writer owner  resource service elsewhere foreign anon   stdio
select    ok     ok     ok     ok       ok      table     source  ok     ok
insert    scope  ok     ok     ok       ok      table     source  scope  ok
update    scope  ok     ok     ok       ok      table     source  scope  ok
replace   scope  ok     ok     ok       ok      table     source  scope  ok
delete    scope  ok     ok     ok       ok      table     source  scope  ok
exec      scope  ok     ok     ok       ok      table     source  scope  ok
explain   ok     ok     ok     ok       ok      ok        source  ok     ok
view      not    not    not    not      not     not       source  not    not
several   not    not    not    not      not     not       source  not    not
""")
# In every mode.
OTHERS = grid("""
                      reader writer owner  resource service elsewhere foreign anon   stdio
server_info           ok     ok     ok     ok       ok      ok        ok      ok     ok
list_providers        ok     ok     ok     ok       ok      ok        source  ok     ok
list_services         ok     ok     ok     ok       ok      ok        source  ok     ok
list_resources        ok     ok     ok     ok       ok      ok        source  ok     ok
list_methods          ok     ok     ok     ok       ok      ok        source  ok     ok
describe_resource     ok     ok     ok     ok       ok      ok        source  ok     ok
describe_method       ok     ok     ok     ok       ok      ok        source  ok     ok
list_registry         local  local  local  local    local   local     source  local  local
pull_provider         local  local  local  local    local   local     source  local  local
validate_select_query ok     ok     ok     ok       ok      ok        source  ok     ok
search_resources      ok     ok     ok     ok       ok      ok        source  ok     ok
reload_credentials    scope  ok     ok     ok       ok      ok        source  scope  ok
""")
MODES = {
    "read_only": READ_ONLY, "safe": SAFE, "delete_safe": DELETE_SAFE, "full_access": FULL_ACCESS,
}  # fmt: skip
WORDS = {
    "server is in 'read_only' mode": "ro",
    "does not support elicitation": "ask",
    "the scope readWrite": "scope",
    "may not use the table": "table",
    "There is no source of cloud providers": "source",
    "is meaningless in local mode": "local",
    "Views are those of provider documents": "not",
    "Multi-statement queries are not supported": "not",
}
TICKET = {"id": "1", "title": "Printer", "open": True}


def actors(app: App) -> dict[str, Actor]:
    made = {"anon": ANONYMOUS, "stdio": stdio(allow_writes=True)}
    for name, rights in TOKENS.items():
        made[name] = app.tokens.verify(app.tokens.create(name, rights)[0])
    return made


async def outcome(app: App, actor: Actor, tool: str, arguments: dict[str, Any]) -> str:
    result = await CloudClient(app, actor).call(tool, **arguments)
    if not result.get("isError"):
        return "ok"
    text = result["content"][0]["text"]
    return next((word for part, word in WORDS.items() if part in text), text)


@pytest.mark.parametrize("mode", list(MODES))
async def test_every_cell_is_as_the_grids_say(tmp_path: Path, mode: str) -> None:
    wrong: list[str] = []
    calls = 0
    with running_desk() as desk:
        surface = {"server": {"mode": mode}, "extended": True}
        async with opened(tmp_path, surface, desk) as app:
            known = actors(app)
            for effect, cells in MODES[mode].items():
                for name, expected in cells.items():
                    # A statement is judged alike by whatever tool it comes.
                    every = effect in ("select", "delete")
                    changes = expected == "ok" and effect in CHANGES
                    for tool in RUNNERS if every else RUNNERS[:1]:
                        desk.tickets["1"] = dict(TICKET)
                        desk.requests.clear()
                        came = await outcome(app, known[name], tool, {"sql": STATEMENTS[effect]})
                        calls += 1
                        if came != expected or len(desk.writes) != changes:
                            wrong.append(f"{tool} {effect} {name}: {came}, {desk.writes}")
            desk.requests.clear()
            for tool, cells in OTHERS.items():
                for name, expected in cells.items():
                    came = await outcome(app, known[name], tool, TOOLS[tool])
                    calls += 1
                    if came != expected:
                        wrong.append(f"{tool} {name}: {came}, not {expected}")
            assert desk.requests == []
            offered = set(app.surface("cloud").tools_by_name)
    assert wrong == []
    assert offered == {*TOOLS, *RUNNERS}
    assert len(recorded(tmp_path)) == calls
