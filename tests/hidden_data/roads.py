"""A server before one world, and the roads to it: surfaces, the wire, the console, its exports.

Each road answers with what a caller reads, as text: rows in their order, notes, errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from hidden_data.reads import TABLES, Read
from hidden_data.worlds import RULES
from support.command_line import serving, tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState
from wire.wires import MODERN, HttpPeer

PASSPHRASE = "correct horse 1"
_SETTINGS: dict[str, Any] = {"surface": {"workbench": {"extended": True}}}
_APP = "text/html;profile=mcp-app"
_PASSING = re.compile(
    r'\\*"(?:[a-z_]*(?:_ms|_at|_s|elapsed|duration|handle|id|etag|cursor|request_id|time|times'
    r'|uptime|more|call|ticket|started|ended|next_cursor|timestamp|query_id|version|connection_id))\\*"'
    r'\s*:\s*(?:\\*"[^"]*"|[-\d.e]+|null)'
)
_TIMES = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|µs|seconds)\b")
_HASH = re.compile(
    r"\b[0-9a-f]{64}\b|(?<=')[0-9a-f]{60,64}|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-\w{12}\b"
)
_CALL = re.compile(r"\bcall [0-9a-f-]{8,}")
_PLACE = re.compile(r"(?:test|hidden)_\d+_\d+|/[\w./-]*/world_[ab]/")


def settled(text: str) -> str:
    """A reply without what differs in each call: times, handles, hashes, names of databases."""
    text = _CALL.sub("CALL", _PASSING.sub("", text))
    return _PLACE.sub("DATABASE", _HASH.sub("HASH", _TIMES.sub("TIME", text)))


class World:
    """The server before one world; `sources` are its databases, by their engines."""

    def __init__(self, address: str, pg_port: int, token: str, engines: list[str]) -> None:
        self._port = int(address.rpartition(":")[2])
        self._pg_port = pg_port
        self._token = token
        self._peers: dict[str, HttpPeer] = {}
        self._lines: dict[str, psycopg.Connection[Any]] = {}
        self._ids: dict[str, str] = {}
        self.visitor = Visitor(address)
        self.visitor.sign_in(name="ada", passphrase=PASSPHRASE)
        self.engines = engines
        self.statements: dict[str, Callable[[str, Read], str]] = {
            "core": self._core,
            "core explain": self._core_explain,
            "workbench": self._workbench,
            "workbench plan": self._workbench_plan,
            "postgres": self._postgres,
            "wire": self._wire,
            "wire prepared": self._wire_prepared,
            "console": self._console,
            "console export": self._console_export,
            "console plan": self._console_plan,
            "console chart": self._console_chart,
            "core chart": self._core_chart,
        }

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
        self.visitor.client.close()

    def _peer(self, surface: str) -> HttpPeer:
        if surface not in self._peers:
            apps = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [_APP]}}}
            peer = HttpPeer(self._port, MODERN, path=f"/mcp/{surface}", capabilities=apps)
            peer.token = self._token
            self._peers[surface] = peer.connect()
        peer = self._peers[surface]
        peer.all_messages.clear()
        return peer

    def _id(self, source: str) -> str:
        if not self._ids:
            listed = json.loads(self._peer("workbench").call("list_connections").text)
            self._ids = {each["name"]: each["id"] for each in listed["connections"]}
        return self._ids[source]

    def tool(self, surface: str, name: str, given: Mapping[str, Any]) -> str:
        """The whole reply to a tool call, an error or a result."""
        outcome = self._peer(surface).call(name, given)
        return json.dumps(outcome.response.get("result") or outcome.response.get("error"))

    # Statements

    def _core(self, source: str, read: Read) -> str:
        given: dict[str, Any] = {"source": source, "sql": read.text, "max_rows": 40}
        if read.params:
            given["params"] = list(read.params)
        reply = self.tool("core", "query", given)
        handle = re.search(r'\\"more\\":\\"([^"\\]+)', reply)
        if handle is not None:
            reply += self.tool("core", "more", {"handle": handle[1]})
        return reply

    def _core_explain(self, source: str, read: Read) -> str:
        return self.tool("core", "explain", {"source": source, "sql": read.text})

    def _workbench(self, source: str, read: Read) -> str:
        given = {"connection_id": self._id(source), "query": read.text}
        return self.tool("workbench", "execute_query", given)

    def _workbench_plan(self, source: str, read: Read) -> str:
        given = {"connection_id": self._id(source), "query": read.text}
        return self.tool("workbench", "explain_query", given)

    def _postgres(self, source: str, read: Read) -> str:
        return self.tool("postgres", "query_database", {"query": read.text, "source": source})

    def _line(self, source: str) -> psycopg.Connection[Any]:
        line = self._lines.get(source)
        if line is None or line.closed:
            where = f"host=127.0.0.1 port={self._pg_port} dbname={source} user=agent"
            line = psycopg.connect(f"{where} password={self._token}", autocommit=True)
            line.prepare_threshold = None
            self._lines[source] = line
        return line

    def _wire(self, source: str, read: Read) -> str:
        try:
            with psycopg.ClientCursor(self._line(source)) as cursor:
                cursor.execute(read.text.encode())
                return repr((cursor.statusmessage, cursor.description, cursor.fetchall()))
        except psycopg.Error as error:
            return repr((error.sqlstate, str(error)))

    def _wire_prepared(self, source: str, read: Read) -> str:
        try:
            with psycopg.RawCursor(self._line(source)) as cursor:
                numbers = count(1)
                text = re.sub(r"\?", lambda _: f"${next(numbers)}", read.text)
                cursor.execute(text.encode(), read.params, prepare=True)
                return repr((cursor.statusmessage, cursor.description, cursor.fetchall()))
        except psycopg.Error as error:
            return repr((error.sqlstate, str(error)))

    def console(self, path: str, body: Any = None) -> str:
        """The answer of an endpoint of the Data page."""
        answer = self.visitor.get(path) if body is None else self.visitor.post(path, body)
        return f"{answer.status_code} {answer.text}"

    def _ended(self, source: str, read: Read) -> dict[str, Any] | str:
        """A run of the Data page that has ended, or the refusal."""
        body = {"source": source, "statement": read.text, "tab": ""}
        answer = self.visitor.post("data/runs", body)
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.text}"
        run = answer.json()["id"]
        return wait_until(lambda: self._run_if_ended(run), "the end of the run")

    def _run_if_ended(self, run: str) -> dict[str, Any] | None:
        found = self.visitor.get(f"data/runs/{run}").json()
        return found if found["ended_at"] is not None else None

    def _console(self, source: str, read: Read) -> str:
        run = self._ended(source, read)
        if isinstance(run, str):
            return run
        rows = self.visitor.get(f"data/runs/{run['id']}/rows?at=0").text
        self.visitor.post(f"data/runs/{run['id']}/close")
        return json.dumps(run) + rows

    def _console_export(self, source: str, read: Read) -> str:
        run = self._ended(source, read)
        if isinstance(run, str) or run["state"] != "done":
            return json.dumps(run)
        answer = self.visitor.post("data/export-ticket", {"run": run["id"], "format": "csv"})
        said = f"{answer.status_code} {answer.text}"
        if answer.status_code == 200:
            ticket = answer.json()["ticket"]
            sent = self.visitor.get(f"data/export?ticket={ticket}", x_tidegate_page=None)
            said = f"{sent.status_code} {sent.text}"
        self.visitor.post(f"data/runs/{run['id']}/close")
        return said

    def _console_plan(self, source: str, read: Read) -> str:
        return self.console("data/explain", {"source": source, "statement": read.text})

    def _console_chart(self, source: str, read: Read) -> str:
        run = self._ended(source, read)
        if isinstance(run, str) or run["state"] != "done":
            return json.dumps(run)
        drawn = self.console(f"data/runs/{run['id']}/chart", {})
        editable = self.console(f"data/runs/{run['id']}/edits")
        self.visitor.post(f"data/runs/{run['id']}/close")
        return drawn + editable

    def _core_chart(self, source: str, read: Read) -> str:
        shown = re.search(r"SELECT (\w+)", read.text)
        x = {"field": "c1" if shown is None else shown[1], "type": "nominal"}
        chart = {"mark": "bar", "encoding": {"x": x, "y": {"aggregate": "count"}}}
        given = {"source": source, "sql": read.text, "chart": chart}
        return self.tool("core", "query", given)

    # What the product says of tables by itself

    def metadata(self, source: str) -> Iterator[tuple[str, str]]:
        """The replies to whatever describes, finds, samples and counts tables, by a name."""
        names = list(TABLES)
        for words in ("people", "email pay", "visits room", "Name", "x"):
            yield (
                f"core search {words}",
                self.tool("core", "search", {"source": source, "words": words}),
            )
        yield "core describe", self.tool("core", "describe", {"source": source, "tables": names})
        yield "core sources", self.tool("core", "sources", {})
        at = {"connection_id": self._id(source)}
        for tool in ("list_databases", "list_schemas", "list_tables", "list_indexes"):
            yield tool, self.tool("workbench", tool, at)
        for name in names:
            of_table = {**at, "table": name}
            for tool in ("describe_table", "get_table_ddl", "browse_table", "count_rows"):
                yield f"{tool} {name}", self.tool("workbench", tool, of_table)
            yield (
                f"search_schema {name}",
                self.tool("workbench", "search_schema", {**at, "query": name}),
            )
            place = {"source": source, "table": name}
            yield f"console rows {name}", self.console("data/rows", place)
            yield f"console count {name}", self.console("data/count", place)
            yield f"console columns {name}", self.console("data/columns", place)
            yield f"console diagram {name}", self.console("data/diagram", place)
            for route in ("edits/columns", "form"):
                words = f"data/{route}?source={source}&table={name}"
                yield f"console {route} {name}", self.console(words)
            text = f"SELECT  FROM {name} WHERE "
            body = {"source": source, "statement": text, "at": len(text)}
            yield f"console complete {name}", self.console("data/complete", body)
            yield (
                f"console table {name}",
                self.console(f"data/table?source={source}&table={name}"),
            )
            if source == "postgres":
                given = {"table_name": name, "include_sample_data": True}
                yield f"schema info {name}", self.tool("postgres", "get_schema_info", given)
        yield "console diagram", self.console("data/diagram", {"source": source, "compare": True})
        yield "console server", self._server(source)
        panels = {**at, "panels": ["blocking", "sizes", "memory", "rights"]}
        yield "dashboard", self.tool("workbench", "get_server_dashboard", panels)
        yield "console tables", self.console(f"data/tables?source={source}")
        yield "console search", self.console(f"data/search?source={source}&words=people")
        for text in (
            "SELECT relname, reltuples, relpages FROM pg_catalog.pg_class ORDER BY 1",
            "SELECT table_name, table_type FROM information_schema.tables"
            " WHERE table_schema NOT LIKE '%schema' ORDER BY 1, 2",
        ):
            yield f"wire {text}", self._wire(source, Read(text))

    def _server(self, source: str) -> str:
        """The panels of a server, without what it is busy with now."""
        found = self.visitor.get(f"data/server?source={source}").json()
        panels = found.get("panels", {})
        return json.dumps({**panels, "sessions": panels.get("sessions", {}).get("columns")})


@contextmanager
def world(
    directory: Path, urls: Mapping[str, str], program: Sequence[str] | None
) -> Iterator[World]:
    """Serve the databases of a world, by their engines' names, under its rules. `program` is what
    Python runs."""
    directory.mkdir(parents=True, exist_ok=True)
    state = directory / "state"
    for name, text in (("consent", "the gate's own\n"), ("passphrase", f"{PASSPHRASE}\n")):
        (directory / name).write_text(text)
    consent, passphrase = str(directory / "consent"), str(directory / "passphrase")
    for words in (
        ("passphrase", "set", "--new-passphrase-file", consent),
        (
            *("operator", "add", "ada", "--new-passphrase-file", passphrase),
            *("--passphrase-file", consent),
        ),
    ):
        ended = tidegate(*words, state=state)
        assert ended.status == 0, ended.err
    store = SqliteState(state / "state.db")
    tokens = Tokens(store.tokens)
    token = tokens.create("agent", TokenRights(Scope.READ_ONLY))[0]
    tokens.close()
    store.close()
    settings = directory / "settings.json"
    sources = [{"name": engine, "url": url} for engine, url in urls.items()]
    settings.write_text(json.dumps({"sources": sources, **_SETTINGS, **RULES}))
    words = ["serve", "--config", str(settings), "--http", "127.0.0.1:0", "--console"]
    with serving([*words, "--pg", "127.0.0.1:0"], state, program=program) as process:
        address, pg_port, seen = "", 0, ""
        while not address or not pg_port:
            line = process.process.stderr.readline()  # type: ignore[union-attr]
            assert line, seen
            seen += line
            if "console is at" in line and (found := re.search(r"http://[^/]+", line)):
                address = found[0]
            if "postgresql://" in line:
                pg_port = int(line.rstrip().rsplit(":", 1)[1].split("/")[0])
        opened = World(address, pg_port, token, list(urls))
        try:
            yield opened
        finally:
            opened.close()
