"""The scripted analyst on the warehouse: 16 questions, asked of each server on PostgreSQL.

No model takes part. The analyst knows the statements, and may send one only when the server's
answers have shown what it takes to write it: the tables, their columns, each text that a column is
compared with as it is spelled, and a value of each text column that is calculated with. What is
missing costs the calls that the server's tools suggest:

- Tidegate core: one search with a topic for each question, `describe` for what it did not show, all
  statements that look at values in one call, all statements in one.
- DBHub: the names of all tables, the columns of each table that is needed, one call that looks at
  values, one with all statements.
- MCP Toolbox: the names, the columns of all tables that are needed in one call, a call for each
  look and each statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from bench import defog_analyst, peers, points, servers
from bench.grounds import grounds, tests_module
from bench.mcp import McpError, StdioSpeaker, compact
from bench.process import Process
from bench.servers import Contestant
from bench.warehouse import NAME, QUESTIONS, Question, as_defog, statements, tables

Step = tuple[str, dict[str, Any]]


class Manner(NamedTuple):
    """How the tools of a server are used: to find tables for questions, to read their columns, to
    look at values, and to answer. `shows` and `shows_format` say whether a text shows a table with
    columns, and a value of a column."""

    find: Callable[[Sequence[Question]], list[Step]]
    describe: Callable[[Sequence[str]], list[Step]]
    run: Callable[[Sequence[str]], list[Step]]
    shows: Callable[[str, str, set[str]], bool]
    shows_format: Callable[[str, str, str], bool]


_SCHEMA = {name: schema for schema, name, _ in tables()}


def _searches(questions: Sequence[Question]) -> list[Step]:
    return [("search", {"words": [each.words for each in questions]})]


def _shown_by_core(seen: str, table: str, columns: set[str]) -> bool:
    found = re.search(rf"(?m)^\w+\.{table}\(.*$", seen)
    return found is not None and columns <= set(re.findall(r"\w+", found.group()))


def _format_by_core(seen: str, table: str, column: str) -> bool:
    found = re.search(rf"(?m)^\w+\.{table}\(.*?\b{column} \w+\?? (\[|\{{|like )", seen)
    return found is not None


def _details(table: str) -> Step:
    arguments = {"object_type": "table", "pattern": table, "detail_level": "full"}
    return "search_objects", {"schema": _SCHEMA[table], **arguments}


MANNERS = {
    servers.GATE: Manner(
        _searches,
        lambda names: [("describe", {"tables": [f"{_SCHEMA[each]}.{each}" for each in names]})],
        lambda texts: [("query", {"sql": list(texts)})],
        _shown_by_core,
        _format_by_core,
    ),
    servers.DBHUB: Manner(
        lambda _: [("search_objects", {"object_type": "table", "pattern": "%"})],
        lambda names: [_details(each) for each in names],
        lambda texts: [("execute_sql", {"sql": "; ".join(texts)})],
        defog_analyst.shown_anywhere,
        lambda *_: False,
    ),
    servers.TOOLBOX: Manner(
        lambda _: [("list_tables", {"output_format": "simple"})],
        lambda names: [("list_tables", {"table_names": ",".join(names)})],
        lambda texts: [("execute_sql", {"sql": each}) for each in texts],
        defog_analyst.shown_anywhere,
        lambda *_: False,
    ),
}


class Talk:
    """A conversation with one server, with what it showed and what it cost."""

    def __init__(self, ask: Callable[[str, dict[str, Any]], str]) -> None:
        self.calls = self.size = 0
        self._ask = ask

    def take(self, steps: Sequence[Step]) -> list[str]:
        """The answers to the steps."""
        answers = [self._ask(tool, arguments) for tool, arguments in steps]
        self.calls += len(steps)
        for (tool, arguments), answer in zip(steps, answers, strict=True):
            self.size += len(compact({"name": tool, "arguments": arguments}))
            self.size += len(answer.encode())
        return answers


def play(manner: Manner, talk: Talk) -> list[str]:
    """Ask all questions. Returns the answers to the statements."""
    needs = [defog_analyst.needs(each.sql, as_defog(), "postgres") for each in QUESTIONS]
    used: dict[str, set[str]] = {}
    for need in needs:
        for table, columns in need.tables.items():
            used.setdefault(table, set()).update(columns)
    seen = "\n".join(talk.take(manner.find(QUESTIONS)))
    missing = [table for table in used if not manner.shows(seen, table, used[table])]
    if missing:
        seen += "\n" + "\n".join(talk.take(manner.describe(missing)))
    looks: dict[str, None] = {}
    for question, need in zip(QUESTIONS, needs, strict=True):
        for table, column, text in need.texts:
            if f"'{text}'" not in seen and (text != text.strip() or text not in seen):
                looks[f"SELECT DISTINCT {column} FROM {_SCHEMA[table]}.{table}"] = None
        for table, column in question.formats:
            if not manner.shows_format(seen, table, column):
                looks[f"SELECT {column} FROM {_SCHEMA[table]}.{table} LIMIT 3"] = None
    if looks:
        talk.take(manner.run(list(looks)))
    return talk.take(manner.run([each.sql for each in QUESTIONS]))


def answer_questions(names: Collection[str]) -> dict[str, list[dict[str, float]]]:
    """Calls and bytes of each server with one of the names; a note instead where PostgreSQL is not
    installed.

    Raises: RuntimeError for a wrong answer.
    """
    (ground,) = grounds(names=("PostgreSQL",), wide=())
    if isinstance(ground, str):
        return {ground: []}
    expected = _make_database(tests_module("support.postgres_server").shared())
    makers = points.contestants(
        ground, with_peers=bool({servers.DBHUB, servers.TOOLBOX} & {*names}), database=NAME
    )
    chosen = [make() for name, make in makers.items() if name in MANNERS and name in names]
    return {one.name: [_play(one, expected)] for one in chosen}


def _make_database(server: Any) -> list[list[tuple[Any, ...]]]:
    """Make the database, and ask it the questions without a server between."""
    import psycopg

    server.drop_database(NAME)
    server.ask(f"CREATE DATABASE {NAME}")
    with psycopg.connect(server.conninfo(NAME), autocommit=True) as connection:
        for statement in statements():
            connection.execute(statement.encode())
        connection.execute("ANALYZE")
        return [connection.execute(each.sql.encode()).fetchall() for each in QUESTIONS]


def _play(contestant: Contestant, expected: list[list[tuple[Any, ...]]]) -> dict[str, float]:
    log = peers.WORK / "logs" / f"{contestant.name.replace(' ', '-')}-{NAME}.log"
    log.parent.mkdir(exist_ok=True, parents=True)
    with Process(contestant.stdio(log), log, pipes=True) as process:
        speaker = StdioSpeaker(process)
        instructions = speaker.open().get("instructions") or ""
        tools = speaker.call("tools/list", {})["tools"]
        definitions = len(instructions.encode()) + sum(
            len(compact({key: tool.get(key) for key in ("name", "description", "inputSchema")}))
            for tool in tools
        )
        talk = Talk(speaker.ask)
        try:
            answers = "\n".join(play(MANNERS[contestant.name], talk))
            for question, rows in zip(QUESTIONS, expected, strict=True):
                defog_analyst.check(answers, rows, question.sql)
        except (McpError, RuntimeError) as error:
            raise RuntimeError(f"{contestant.name}: {error}") from error
    return {
        "calls": talk.calls,
        "tools": len(tools),
        "definitions": definitions,
        "conversation": talk.size,
        "total": definitions + talk.size,
    }
