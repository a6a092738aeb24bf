"""The official Python SDK 2.x gets itself a token of an authorization server, and uses it.

Run by the SDK's own interpreter, by `loaded.py`. The configuration is an object with `url`, `mode`
and `calls` (pairs of tool and arguments). It registers itself, goes the way of the
authorization code with PKCE, and steps up when the server says that its scope does not suffice.
Prints what the tools answered and which scopes and resources it asked for. Imports nothing of the
server.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from mcp import Client, MCPError

warnings.simplefilter("ignore")
CONFIG: dict[str, Any] = {}
REPORT: dict[str, Any] = {"asked": [], "results": []}
CALLBACK = "http://127.0.0.1:1/callback"


class Memory:
    """Keeps what was got for as long as this runs."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Person:
    """Goes where the client sends them, and agrees."""

    def __init__(self) -> None:
        self.answer: dict[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        asked = parse_qs(urlsplit(url).query)
        names = ("scope", "resource", "code_challenge_method")
        REPORT["asked"].append({name: asked.get(name, [""])[0] for name in names})
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(url)
        self.answer = parse_qs(urlsplit(response.headers["location"]).query)

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"][0], state=self.answer.get("state", [None])[0]
        )


async def main() -> None:
    person = Person()
    provider = OAuthClientProvider(
        server_url=CONFIG["url"],
        client_metadata=OAuthClientMetadata(
            client_name="peer",
            redirect_uris=[CALLBACK],
            grant_types=["authorization_code"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        ),
        storage=Memory(),
        redirect_handler=person.visit,
        callback_handler=person.come_back,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=60) as http,
        Client(streamable_http_client(CONFIG["url"], http_client=http), mode=CONFIG["mode"]) as mcp,
    ):
        REPORT["revision"] = mcp.protocol_version
        for name, given in CONFIG["calls"]:
            try:
                result = await mcp.call_tool(name, given)
            except MCPError as error:
                REPORT["results"].append({"code": error.code, "message": error.message})
            else:
                summary = {"text": result.content[0].text, "is_error": bool(result.is_error)}
                REPORT["results"].append(summary)
    print(json.dumps(REPORT))


def converse(config: dict[str, Any]) -> None:
    CONFIG.update(config)
    asyncio.run(asyncio.wait_for(main(), 240))
