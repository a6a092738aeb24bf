"""The scripted analyst on Defog's databases: every question by itself, asked of each server.

No model takes part. The analyst knows the accepted statement of a question (`defog.py`) and may
send it only when the server's answers have shown what it takes to write it: the tables, their
columns, and each text that a column is compared with, as it is spelled. What is missing costs the
calls that the server's tools suggest: `describe` for a table, a statement that looks at the values
of a column. So a server that shows less at first needs more calls. Each answer is compared with
what the bare driver gets for the same statement.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from bench import defog, peers
from bench.mcp import McpError, StdioSpeaker, compact
from bench.process import Process
from bench.servers import Contestant

Step = tuple[str, dict[str, Any]]
_RFC_3339 = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z$")
Ask = Callable[[str, dict[str, Any]], str]
Rows = dict[str, list[dict[str, float]]]


class Need(NamedTuple):
    """What a statement takes: the tables with the columns used of each, and the texts that columns
    are compared with, as (table, column, text)."""

    tables: dict[str, set[str]]
    texts: tuple[tuple[str, str, str], ...]


class Manner(NamedTuple):
    """How the tools of a server are used. `schema` are the first steps for a question, `describe`
    those for tables that these did not show, `look` those for statements that look at values.
    `shows` says whether an answer shows a table with the columns."""

    schema: Callable[[str], list[Step]]
    describe: Callable[[list[str]], list[Step]]
    look: Callable[[list[str]], list[Step]]
    query: Callable[[str], Step]
    shows: Callable[[str, str, set[str]], bool]


def shown_anywhere(answer: str, table: str, columns: set[str]) -> bool:
    """Whether the names of the table and of the columns are in the answer."""
    words = {word.casefold() for word in re.findall(r"\w+", answer)}
    return {table.casefold(), *(column.casefold() for column in columns)} <= words


def _shown_in_a_line(answer: str, table: str, columns: set[str]) -> bool:
    found = re.search(rf'(?im)^(?:\w+ )*"?{re.escape(table)}"?\(.*$', answer)
    return found is not None and shown_anywhere(found.group(), table, columns)


CORE = Manner(
    schema=lambda question: [("search", {"words": question})],
    describe=lambda tables: [("describe", {"tables": tables})],
    look=lambda statements: [("query", {"sql": statements})],
    query=lambda sql: ("query", {"sql": sql, "max_rows": 1000}),
    shows=_shown_in_a_line,
)
DBHUB = Manner(
    schema=lambda _: [
        ("search_objects", {"object_type": "table", "pattern": "%", "detail_level": "full"})
    ],
    describe=lambda _: [],
    look=lambda statements: [("execute_sql", {"sql": "; ".join(statements)})],
    query=lambda sql: ("execute_sql", {"sql": sql}),
    shows=shown_anywhere,
)
TOOLBOX = Manner(
    schema=lambda _: [("list_tables", {})],
    describe=lambda _: [],
    look=lambda statements: [("execute_sql", {"sql": sql}) for sql in statements],
    query=lambda sql: ("execute_sql", {"sql": sql}),
    shows=shown_anywhere,
)
MANNERS = {"Tidegate core": CORE, "DBHub": DBHUB, "MCP Toolbox": TOOLBOX}


def questions(contestants: dict[str, Contestant]) -> Rows:
    """Calls and bytes for the questions on each database, each asked by a caller that knows
    nothing, and all by one that remembers what it saw; a note instead where the data is absent."""
    try:
        folder = defog.find_folder()
    except defog.DefogAbsentError as absent:
        return {str(absent): []}
    rows: Rows = {}
    for name, one in contestants.items():
        if name in MANNERS:
            for title, remembers in ((name, False), (f"{name}, remembering", True)):
                rows[title] = [_play_all(one, folder, remembers=remembers)]
    return rows


def _play_all(contestant: Contestant, folder: Path, *, remembers: bool) -> dict[str, float]:
    """From a fresh server for each database. Raises: RuntimeError for a wrong answer."""
    row: dict[str, float] = {
        "questions": 0,
        "calls": 0,
        "most calls": 0,
        "definitions": 0,
        "conversations": 0,
    }
    manner = MANNERS[contestant.name]
    for name, path in databases(folder).items():
        database = defog.read_database(folder, name)
        log = peers.WORK / "logs" / f"{contestant.name.replace(' ', '-')}-{name}.log"
        with Process(contestant.stdio(path), log, pipes=True) as process:
            speaker = StdioSpeaker(process)
            instructions = speaker.open().get("instructions") or ""
            row["definitions"] = len(instructions.encode()) + sum(
                len(compact({k: tool.get(k) for k in ("name", "description", "inputSchema")}))
                for tool in speaker.call("tools/list", {})["tools"]
            )
            talk = Conversation(manner, speaker.ask)
            for question in defog.read_questions(folder, "sqlite", name):
                if not remembers:
                    talk.seen = ""
                sql, calls, size = question.accepted[0], talk.calls, talk.size
                try:
                    answer = talk.put(question.text, sql, needs(sql, database))
                    check(answer, rows_of(path, sql), sql)
                except McpError as error:
                    raise RuntimeError(f"{contestant.name}: {error}: {sql}") from error
                row["questions"] += 1
                row["calls"] += talk.calls - calls
                row["most calls"] = max(row["most calls"], talk.calls - calls)
                row["conversations"] += talk.size - size
    return row


def databases(folder: Path) -> dict[str, Path]:
    """The databases as SQLite's files in the work folder, written for today."""
    files: dict[str, Path] = {}
    for name in defog.list_databases(folder):
        files[name] = peers.WORK / f"defog_{name}.sqlite"
        defog.make_database(name, files[name], folder)
    return files


def needs(sql: str, database: defog.Database, dialect: str = "sqlite") -> Need:
    """What it takes to write the statement."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, read=dialect)
    known = {table.name.casefold(): table for table in database.tables}
    aliases: dict[str, str] = {}
    for table in tree.find_all(exp.Table):
        if table.name.casefold() in known:
            aliases[table.alias_or_name.casefold()] = table.name.casefold()
    used: dict[str, set[str]] = {known[name].name: set() for name in aliases.values()}

    def owner(column: exp.Column) -> tuple[defog.Table, defog.Column] | None:
        query = column.find_ancestor(exp.Select)
        near = [] if query is None else [each.alias_or_name for each in query.find_all(exp.Table)]
        for alias in [column.table] if column.table else [*near, *aliases]:
            table = known.get(aliases.get(alias.casefold(), ""))
            if table is None:
                continue
            for own in table.columns:
                if own.name.casefold() == column.name.casefold():
                    return table, own
        return None

    for column in tree.find_all(exp.Column):
        found = owner(column)
        if found is not None:
            used[found[0].name].add(found[1].name)
    texts: dict[tuple[str, str, str], None] = {}
    for comparison in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        column = comparison.this if isinstance(comparison.this, exp.Column) else None
        found = owner(column) if column is not None else None
        if found is None or not found[1].type.startswith(("text", "varchar")):
            continue
        for value in (comparison.args.get("expression"), *comparison.expressions):
            if isinstance(value, exp.Literal) and value.is_string:
                texts[found[0].name, found[1].name, value.this] = None
    return Need(used, tuple(texts))


class Conversation:
    """What was asked of one server: `calls`, and `size`, the bytes of calls and answers. `seen` are
    the answers that show the schema and values."""

    def __init__(self, manner: Manner, ask: Ask) -> None:
        self.manner = manner
        self.calls = 0
        self.size = 0
        self.seen = ""
        self._ask = ask

    def put(self, question: str, sql: str, need: Need) -> str:
        """Find out what the statement takes, as far as it was not seen yet, and send it. Returns
        the answer to the statement."""
        manner = self.manner
        if self._missing(need) or not self.seen:
            self._look(manner.schema(question))
        missing = self._missing(need)
        if missing:
            self._look(manner.describe(missing))
        looks = {
            f"SELECT DISTINCT {column} FROM {table}": None
            for table, column, text in need.texts
            if text not in self.seen
        }
        if looks:
            self._look(manner.look(list(looks)))
        return self._take(manner.query(sql))

    def _missing(self, need: Need) -> list[str]:
        shows = self.manner.shows
        return [
            table for table, columns in need.tables.items() if not shows(self.seen, table, columns)
        ]

    def _look(self, steps: Iterable[Step]) -> None:
        self.seen += "".join(f"\n{self._take(step)}" for step in steps)

    def _take(self, step: Step) -> str:
        tool, arguments = step
        answer = self._ask(tool, arguments)
        self.calls += 1
        self.size += len(compact({"name": tool, "arguments": arguments})) + len(answer.encode())
        return answer


def check(answer: str, expected: Sequence[Sequence[Any]], sql: str) -> None:
    """Raises: RuntimeError unless the answer holds every value of the driver's rows."""
    said = {_plain(value) for value in _scalars(_decode(answer))}
    for row in expected:
        for value in row:
            if value is not None and _plain(value) not in said:
                raise RuntimeError(f"{value!r} is missing in the answer to {sql}: {answer[:300]}")


def rows_of(path: Path, sql: str) -> list[Any]:
    """What the bare driver gets."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def _decode(answer: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError:  # the Toolbox sends a block for each row
        decoder, rows, at = json.JSONDecoder(), [], 0
        while at < len(answer):
            try:
                row, at = decoder.raw_decode(answer, at)
                rows.append(row)
            except ValueError:
                at += 1
        return rows


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    else:
        yield value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:  # the Toolbox writes dates as RFC 3339
            return _RFC_3339.sub(r"\1 \2", value).removesuffix(" 00:00:00")
    return float(f"{value:.9g}") if isinstance(value, (int, float, Decimal)) else value
