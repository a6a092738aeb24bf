"""Questions answered with the model of the caller's client, and readings chosen by its user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from products.pgedge.support.asking import AGENT, opened_shop
from products.pgedge.support.scripted_model import wrote
from tidegate.app import App
from tidegate.products.pgedge.surface.question_dialogue import client_model, user_choice
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.model import Question
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Info, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.revisions import ALL
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.core.errors import render_error
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import ToolContext

META = "io.modelcontextprotocol/"
GOOD = "SELECT full_name FROM customers WHERE city = 'London'"
READINGS = json.dumps({"readings": ["by birth", "by residence"]})
MODERN = "2026-07-28"

Asked = dict[str, Any]


class Args(msgspec.Struct, frozen=True):
    question: str


async def _ask(context: ToolContext, args: Args) -> ToolResult:
    found = await answer(
        context,
        Question(text=args.question),
        client_model=client_model(context),
        ask_user=user_choice(context),
    )
    shown = {
        "origin": found.origin,
        "sql": found.sql,
        "rows": found.page.rows.decode() if found.page else None,
        "guide": found.guide is not None,
        "refusal": found.refusal.code.value if found.refusal else None,
    }
    return ToolResult(body=json.dumps(shown).encode(), structured=False)


def surface(app: App) -> Surface:
    return Surface(
        app.gateway,
        ServerProfile(
            name="asking",
            info=Info("asking", "1"),
            settings=Settings(RevisionPolicy(ALL)),
            capabilities={"tools": {}},
        ),
        Primitives((SurfaceTool("ask", "Ask", Args, _ask),)),
        Refusals(render_error),
    )


class Client:
    """A client in process, which answers what the server asks of it with `reply`."""

    def __init__(
        self,
        app: App,
        revision: str,
        reply: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        capabilities: Mapping[str, Any],
    ) -> None:
        served = surface(app)
        self.kernel = Kernel(served, served.settings)
        self.session = Session(AGENT)
        self.revision = revision
        self.reply = reply
        self.capabilities = capabilities
        self.asked: list[Asked] = []
        self.waiting: set[asyncio.Task[Any]] = set()
        self.open = True

    def send(self, message: bytes) -> None:
        asked = msgspec.json.decode(message)
        if "id" in asked and "method" in asked:
            self.asked.append(asked)
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": self.reply(asked)}
            self.waiting.add(asyncio.ensure_future(self._post(answer)))

    async def _post(self, message: Mapping[str, Any]) -> Any:
        transport = TransportContext(AGENT, self, session=self.session)
        answered = await self.kernel.serve(msgspec.json.encode(message), transport)
        return None if answered is None else msgspec.json.decode(answered.frame)

    async def ask(self, question: str) -> dict[str, Any]:
        call = {"name": "ask", "arguments": {"question": question}}
        info = {"name": "client", "version": "1"}
        if self.revision != MODERN:
            hello = {
                "protocolVersion": self.revision,
                "capabilities": self.capabilities,
                "clientInfo": info,
            }
            await self._request("initialize", hello)
            await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return self._shown(await self._request("tools/call", call))
        meta = {
            f"{META}protocolVersion": MODERN,
            f"{META}clientCapabilities": self.capabilities,
            f"{META}clientInfo": info,
        }
        more: dict[str, Any] = {}
        while True:
            result = await self._request("tools/call", {**call, **more, "_meta": meta})
            if result.get("resultType") != "input_required":
                return self._shown(result)
            self.asked += result["inputRequests"].values()
            answers = {key: self.reply(each) for key, each in result["inputRequests"].items()}
            more = {"inputResponses": answers, "requestState": result["requestState"]}

    async def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        reply = await self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "result" in reply, reply
        return reply["result"]

    def _shown(self, result: Mapping[str, Any]) -> dict[str, Any]:
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])


def talk(
    directory: Path,
    revision: str,
    *replies: str,
    sampling: bool = True,
    capabilities: Mapping[str, Any] | None = None,
    action: str = "accept",
) -> tuple[dict[str, Any], list[Asked]]:
    left = list(replies)

    def reply(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if asked["method"] == "elicitation/create":
            return {"action": action, "content": {"reading": "by residence"}}
        turn = len(asked["params"]["messages"]) // 2
        content = {"type": "text", "text": left[turn]}
        return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}

    async def whole() -> tuple[dict[str, Any], list[Asked]]:
        async with opened_shop(directory, {"sampling": sampling}) as app:
            offered = {"sampling": {}, "elicitation": {}} if capabilities is None else capabilities
            client = Client(app, revision, reply, offered)
            return await client.ask("Who is from London?"), client.asked

    return asyncio.run(whole())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", MODERN])
def test_the_clients_model_writes_and_repairs_the_statement(tmp_path: Path, revision: str) -> None:
    shown, asked = talk(tmp_path, revision, wrote("SELECT fullname FROM customers"), wrote(GOOD))
    assert (shown["origin"], shown["sql"]) == ("client_model", GOOD)
    assert shown["rows"] == '[["Ada Lovelace"]]'
    assert [each["method"] for each in asked] == ["sampling/createMessage"] * 2
    assert "customers(id int pk" in asked[0]["params"]["messages"][0]["content"]["text"]
    recorded = "".join(path.read_text() for path in (tmp_path / "state/audit").glob("*.jsonl"))
    assert '"request":"client_model"' in recorded


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_the_clients_user_chooses_a_reading(tmp_path: Path, revision: str, action: str) -> None:
    shown, asked = talk(tmp_path, revision, READINGS, wrote(GOOD), action=action)
    assert shown["sql"] == GOOD
    methods = [each["method"] for each in asked]
    assert methods.count("elicitation/create") == 1
    last = asked[-1]["params"]["messages"][-1]["content"]["text"]
    chosen = "The user means: by residence"
    assert (last == chosen) == (action == "accept")


@pytest.mark.parametrize(
    ("sampling", "capabilities"), [(False, {"sampling": {}}), (True, {}), (True, {"roots": {}})]
)
def test_the_clients_model_is_asked_only_if_both_sides_allow_it(
    tmp_path: Path, sampling: bool, capabilities: Mapping[str, Any]
) -> None:
    shown, asked = talk(
        tmp_path, "2025-11-25", wrote(GOOD), sampling=sampling, capabilities=capabilities
    )
    assert (shown["guide"], shown["sql"], asked) == (True, None, [])


def test_a_client_model_that_writes_a_change_is_refused(tmp_path: Path) -> None:
    shown, _ = talk(tmp_path, "2025-11-25", *[wrote("DELETE FROM orders")] * 4)
    assert (shown["refusal"], shown["rows"]) == ("policy.read_only", None)
