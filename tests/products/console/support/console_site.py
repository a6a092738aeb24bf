"""A server for the console's page alone: its files as they are, and canned answers.

It is here for states that a real server reaches seldom or slowly. The answers have the shapes of
`contract.js`; what the real server answers is tested with the real server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import tidegate
from products.console.support import console_access as of_access
from products.console.support import console_cards as canned
from products.console.support.console_data import Data, made_file
from products.console.support.console_statements import Statements
from support.eventually import wait_until
from tidegate.products.console.conventions import POLICY
from tidegate.products.console.page_files import render_index

PAGE = Path(tidegate.__file__).parent / "products" / "console" / "page"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
Json = dict[str, Any]
HEARTBEAT_S = 0.25


class Site:
    """What the canned server knows; tests change it, and `publish` what has changed."""

    def __init__(self) -> None:
        self.session: Json | None = canned.session()
        self.link = "a-link"
        self.passphrase = "a passphrase"
        self.cards: dict[str, Json] = {}
        self.agents: list[Json] = []
        self.calls: list[Json] = []
        self.own_recent: Json = {}
        """What the Inbox has of them before other gates have answered."""
        self.steps = {"source": True, "token": False, "client": False}
        self.lines = [canned.line(n) for n in range(1, 401)]
        self.gates: Json = {}
        self.read = 1.0
        self.lines_on_record: dict[int, Json] = {}
        self.change = canned.change()
        self.access = of_access.access()
        self.budgets = of_access.budgets()
        self.now: Json = canned.now_page()
        self.complete = True
        self.webhook = canned.webhook()
        self.cell = of_access.cell_detail()
        self.sources = 120
        self.proof: Json = {
            "state": "verified",
            "text": "verified to line 400 at 14:02; 3 after the last checkpoint",
            "running": False,
        }
        self.refusals: dict[str, tuple[int, Json]] = {}
        self.posts: list[tuple[str, Json]] = []
        self.streams: list[Queue[str | None]] = []
        self.events: list[tuple[int, str]] = []
        self.most_streams = 0
        self.serves_events = True
        self.build = "build-1"
        self.seq = 1
        self._lock = threading.Lock()
        self.data = Data(self.publish)
        self.statements = Statements(self.publish, self.put)

    def add(self, *cards: Json) -> None:
        for each in cards:
            self.cards[each["id"]] = each

    def publish(self, name: str, data: Json) -> None:
        with self._lock:
            self.seq += 1
            text = f"event: {name}\ndata: {json.dumps(data)}\nid: {self.seq}\n\n"
            self.events.append((self.seq, text))
            for stream in self.streams:
                stream.put(text)

    def follow(self, after: int) -> Queue[str | None]:
        """A stream of what happens, and of what happened after an event."""
        stream: Queue[str | None] = Queue()
        hello = {"seq": self.seq, "build": self.build, "now": canned.time.time()}
        with self._lock:
            stream.put(f"event: hello\ndata: {json.dumps(hello)}\nid: {after}\n\n")
            for seq, text in self.events:
                if seq > after:
                    stream.put(text)
            self.streams.append(stream)
            self.most_streams = max(self.most_streams, len(self.streams))
        return stream

    def put(self, card: Json) -> Json:
        """Change a card, or add it, as all pages hear."""
        self.cards[card["id"]] = card
        self.publish("card", card)
        self.statements.answered(card)
        return card

    def cut_streams(self) -> None:
        """End every stream, and answer none until `serves_events` is set again."""
        with self._lock:
            self.serves_events = False
            for stream in self.streams:
                stream.put(None)

    def posted(self, path: str) -> list[Json]:
        return [body for at, body in self.posts if at == path]

    def await_post(self, path: str, **fields: Any) -> None:
        """Wait until the last body that was posted there has these fields: the page may show what
        it asks for before it asks."""

        def look() -> bool:
            found = self.posted(path)
            return bool(found) and fields.items() <= found[-1].items()

        wait_until(look, f"{path} with {fields}")

    # answers

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        match path.split("/"):
            case ["inbox"]:
                return 200, self._inbox()
            case ["inbox", key] if key in self.cards:
                return 200, self.cards[key]
            case ["changes", _]:
                return 200, self.change
            case ["activity"]:
                return 200, self._activity(query)
            case ["activity", "recent"]:
                return 200, self._recent()
            case ["activity", "sessions"]:
                return 200, {"sessions": self._sessions(query), "next": None}
            case ["activity", "story"]:
                return 200, self._story(query)
            case ["activity", "proof"]:
                return 200, self.proof
            case ["activity", "lines", named]:
                name = named.partition("@")[0]
                known = any(name in (each["call_id"], str(each["n"])) for each in self.lines)
                if not known:
                    return 404, _refusal("line", "There is no such line.")
                return 200, self._record(name)
            case ["access"]:
                return 200, self.access
            case ["now"]:
                figures = canned.now_page(query.get("range", "hour"))["figures"]
                figures["complete"] = self.complete
                return 200, {**self.now, "figures": figures}
            case ["queries"]:
                return 200, {"queries": [], "tabs": {}}
            case ["access", "budgets"]:
                return 200, self.budgets
            case ["access", "choices"]:
                return 200, of_access.choices()
            case ["access", "matrix"]:
                return 200, self._matrix(query)
            case ["access", "cell"]:
                return 200, self.cell
            case ["data", *parts]:
                return self.statements.get(parts, query) or self.data.get(parts, query)
            case _:
                return 404, {"error": "not_found", "message": "It is not here.", "hint": ""}

    def post(self, path: str, body: Json) -> tuple[int, Any]:
        match path.split("/"):
            case ["session"]:
                return self._signed_in()
            case ["sign-in"]:
                given = body.get("link") == self.link or body.get("passphrase") == self.passphrase
                if not given:
                    return 403, _refusal("console.sign_in", "Name or passphrase is wrong.")
                self.session = self.session or canned.session()
                return self._signed_in()
            case ["sign-out"]:
                self.session = None
                return 204, None
            case ["inbox", key, verb]:
                return self._answer(self.cards[key], verb, body)
            case ["changes", _, "undo"]:
                return self._undo(body)
            case ["access", "tokens"]:
                if body["passphrase"] != self.passphrase:
                    return 403, _refusal("operator.consent", "That is not your passphrase.")
                return 201, {
                    "secret": "tg_" + "s" * 43,
                    "token": of_access.token("t9", body["name"]),
                }
            case ["access", "operators"]:
                return 201, {"link": "a-secret-of-a-link", "lasts_s": 3600}
            case ["access", "preview"]:
                columns = [{"name": "id", "masked": False}, {"name": "email", "masked": True}]
                return 200, {"columns": columns, "rows": [["1", None], ["2", None]], "more": True}
            case ["access", "ask"]:
                verdict = {"verdict": "deny", "rule": "actor.writes", "reason": canned.HOSTILE}
                more = {"hint": None, "effect": "write", "judged_by": "", "tables": []}
                return 200, {**verdict, **more, "settings": [], "rules": []}
            case ["activity", "export-ticket"]:
                return 200, made_file(f"ticket-{body['format']}", body["format"])
            case ["data", *parts]:
                return self.statements.post(parts, body) or self.data.post(parts, body)
            case _:
                return 200, {}

    def _signed_in(self) -> tuple[int, Any]:
        if self.session is None:
            return 401, _refusal("console.signed_out", "You are signed out.")
        return 200, {**self.session, "build": self.build}

    def _matrix(self, query: dict[str, str]) -> Json:
        after, limit = int(query.get("after") or 0), int(query["limit"])
        if "source" in query:
            rows = [of_access.matrix_row(caller=each) for each in of_access.choices()["callers"]]
        else:
            names = [f"source-{number:04}" for number in range(self.sources)]
            found = [each for each in names if query.get("q", "") in each]
            rows = [
                of_access.matrix_row(source={"name": each, "engine": "sqlite", "color": 2})
                for each in found
            ]
        page = rows[after : after + limit]
        more = str(after + limit) if after + limit < len(rows) else None
        return {"rows": page, "total": len(rows), "next": more, "server_ms": 1.0}

    def _inbox(self) -> Json:
        cards = list(self.cards.values())
        return {
            "pending": [each for each in cards if each["state"] == "pending"],
            "recent": [each for each in cards if each["state"] != "pending"],
            **self._recent(),
            **self.own_recent,
            "webhook": self.webhook,
            "seq": self.seq,
        }

    def _recent(self) -> Json:
        steps = {**self.steps, "client": bool(self.calls)}
        return {"agents": self.agents, "calls": self.calls, "steps": steps, **self.gates}

    def _answer(self, card: Json, verb: str, body: Json) -> tuple[int, Any]:
        if verb == "revoke":
            return 200, self.put({**card, "grant": None})
        if card["digest"] != body["digest"] or card["state"] != "pending":
            return 409, _refusal("approval.changed", "The question has changed.")
        wanted = verb == "allow" and card["may"]["passphrase"]
        if wanted and body.get("passphrase") != self.passphrase:
            return 403, _refusal("operator.consent", "The passphrase is wrong.")
        now = canned.time.time()
        decided: Json = {**card, "decided_at": now, "decided_by": "ann"}
        if verb == "deny":
            decided |= {"state": "denied", "decision_reason": body["reason"]}
        elif body.get("minutes"):
            until = now + 60 * body["minutes"]
            decided |= {
                "state": "allowed",
                "grant": {"until": until, "uses": 0, "most_uses": 20},
            }
        else:
            decided |= {"state": "allowed"}
        return 200, self.put(decided)

    def _undo(self, body: Json) -> tuple[int, Any]:
        if self.session and not self.session["confirmed"] and not body.get("passphrase"):
            return 403, _refusal("operator.consent", "Your passphrase is needed.")
        for card in self.cards.values():
            if card["run"] and card["run"]["change_id"] == self.change["id"]:
                self.put({**card, "run": {**card["run"], "undone": True}})
        return 200, {"rows": self.change["count"], "change_id": "change-2"}

    def _own(self, query: dict[str, str]) -> int:
        return len(self._found({**query, "own": "shown"})) - len(self._found(query))

    def _found(self, query: dict[str, str]) -> list[Json]:
        names = {"actor": "actor_name"}
        shows_own, query = query.get("own") == "shown", dict(query)
        found = [each for each in self.lines if shows_own or each["tool"] != "browse"]
        for each in self.lines:
            if each["call_id"] == query.get("session"):
                query["session"] = str(each["session"])
        for name in ("source", "actor", "outcome", "effect", "surface", "session"):
            if value := query.get(name):
                found = [each for each in found if str(each[names.get(name, name)]) == value]
        if text := query.get("q"):
            found = [each for each in found if text.lower() in each["statement"].lower()]
        return found

    def _activity(self, query: dict[str, str]) -> Json:
        found = self._found(query)
        before = int(query.get("before", 1_000_000_000))
        older = [each for each in reversed(found) if each["n"] < before]
        page = older[: int(query.get("limit", 100))]
        facets: dict[str, list[list[Any]]] = {}
        for name in ("source", "actor", "outcome", "effect", "surface"):
            key = "actor_name" if name == "actor" else name
            values = sorted({each[key] for each in found})
            facets[name] = [[v, sum(each[key] == v for each in found)] for v in values]
        return {
            "lines": page,
            "next": str(page[-1]["n"]) if len(page) < len(older) else None,
            "counts": {
                "total": len(found),
                "more": len(found) >= 10_000,
                "own": {"left_out": 0 if "own" in query else self._own(query), "more": False},
            },
            "facets": facets,
            "newest": {each.get("gate", ""): each["n"] for each in self.lines},
            "read": self.read,
            **self.gates,
        }

    def _sessions(self, query: dict[str, str]) -> list[Json]:
        found = self._found(query)
        groups = [
            (name, [each for each in found if each["session"] == name])
            for name in sorted({each["session"] for each in found})
        ]
        return [
            {
                "session": name,
                "actor_name": lines[0]["actor_name"],
                "client": lines[0]["client"],
                "started_at": lines[0]["time"],
                "ended_at": lines[-1]["time"],
                "calls": len(lines),
                "denied": sum(each["outcome"] == "denied" for each in lines),
                "writes": sum(each["effect"] == "write" for each in lines),
                "call_id": lines[0]["call_id"],
            }
            for name, lines in groups
        ]

    def _story(self, query: dict[str, str]) -> Json:
        after, found = int(query.get("after") or 0), self._found(query)
        later = [each for each in found if each["n"] > after]
        page = [{**each, "proof": self._record(each["call_id"])["proof"]} for each in later[:100]]
        return {
            "session": self._sessions(query)[0],
            "lines": page,
            "next": page[-1]["n"] if len(page) < len(later) else None,
        }

    def _record(self, name: str) -> Json:
        line = next(each for each in self.lines if name in (each["call_id"], str(each["n"])))
        number = line["n"]
        first: Json = {
            "line": line,
            "fields": {**line, "database": "main"},
            "proof": {
                "state": "verified",
                "text": "This line is as it was written; it is before checkpoint 12.",
                "segment": "audit-1.jsonl",
                "seq": number,
                "hash": "5f" * 32,
            },
            "approval": None,
        }
        return {**first, **self.lines_on_record.get(number, {})}


def _refusal(code: str, message: str, hint: str = "") -> Json:
    return {"error": code, "message": message, "hint": hint}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/console":
            texts = {path.name: path.read_text() for path in PAGE.iterdir() if path.is_file()}
            self._send(200, render_index(texts, self.site.build).encode(), "text/html")
        elif url.path.startswith("/console/assets/"):
            folder, _, name = url.path.rpartition("/")
            file = PAGE / name
            if folder.rpartition("/")[2] != self.site.build:
                self._send(404, b"{}", "application/json")
                return
            self._send(200, file.read_bytes(), TYPES[file.suffix])
        elif url.path == "/console/api/events":
            self._stream()
        elif url.path in {"/console/api/activity/export", "/console/api/data/export"}:
            self.site.posts.append(("export", {"ticket": parse_qs(url.query)["ticket"][0]}))
            self.send_response(200)
            self.send_header("content-disposition", 'attachment; filename="activity.jsonl"')
            self.send_header("content-length", "3")
            self.end_headers()
            self.wfile.write(b"{}\n")
        else:
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self._answer(unquote(url.path), lambda path: self.site.get(path, query))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))

        def answer(path: str) -> tuple[int, Any]:
            self.site.posts.append((path, body))
            return self.site.post(path, body)

        self._answer(unquote(urlsplit(self.path).path), answer)

    def _answer(self, path: str, answer: Any) -> None:
        path = path.removeprefix("/console/api/")
        open_to_all = path in {"session", "sign-in"}
        if not open_to_all and self.site.session is None:
            status, body = 401, _refusal("console.signed_out", "You are signed out.")
        elif not open_to_all and self.headers["x-tidegate-page"] != "page-secret":
            status, body = 403, _refusal("console.page", "The page's secret is missing.")
        elif path in self.site.refusals:
            status, body = self.site.refusals[path]
        else:
            status, body = answer(path)
        content = b"" if body is None else json.dumps(body).encode()
        self._send(status, content, "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-security-policy", POLICY)
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("cache-control", "no-store")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self) -> None:
        site = self.site
        if not site.serves_events or site.session is None:
            code = "console.signed_out" if site.session is None else "busy"
            self._send(
                401 if site.session is None else 503, json.dumps(_refusal(code, "No.")).encode(), ""
            )
            return
        after = int(parse_qs(urlsplit(self.path).query)["after"][0])
        stream = site.follow(after)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            while site.serves_events:
                try:
                    text = stream.get(timeout=HEARTBEAT_S)
                except Empty:
                    text = ":\n\n"
                if text is None:
                    break
                self._write(text)
        except OSError:
            pass
        finally:
            site.streams.remove(stream)
            self.close_connection = True

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes is no error."""


@contextmanager
def console_site() -> Iterator[tuple[Site, str]]:
    """A site, and the address of its page."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site, f"http://localhost:{server.server_port}/console"
    finally:
        site.cut_streams()
        server.shutdown()
        thread.join()
        server.server_close()
