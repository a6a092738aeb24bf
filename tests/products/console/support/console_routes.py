"""The routes of the console, as the application serves them."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from tempfile import TemporaryDirectory

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.products.console.request_checks import RequestChecks
from tidegate.products.console.serving import console_endpoint

API = "/console/api/"
PAGE = frozenset({"/console", "/console/assets/{build}/{name}"})
"""What holds no data: anyone who reaches the server may load it."""
UNSIGNED = (("POST", "session"), ("POST", "sign-in"))
"""What begins a session."""


@cache
def served() -> tuple[tuple[str, str], ...]:
    """(method, path below the API's) of every route that answers with data, those that begin a
    session first; x stands for what a path names."""

    async def made(directory: str) -> list[tuple[str, str]]:
        app = App.open(Config(state=directory))
        try:
            checks = RequestChecks("127.0.0.1", 1, tls=False)
            router = console_endpoint(app, checks).router
            assert router is not None
            paths = [path for path in router.paths if path not in PAGE]
            assert all(path.startswith(API) for path in paths)
            return [
                (method, re.sub(r"\{\w+\}", "x", path.removeprefix(API)))
                for path in paths
                for method in (router.allowed(path) or b"").decode().split(", ")
            ]
        finally:
            await app.close()

    with TemporaryDirectory() as directory:
        found = asyncio.run(made(directory))
    rest = [each for each in found if each not in UNSIGNED]
    assert len(found) == len(rest) + len(UNSIGNED)
    return (*UNSIGNED, *rest)


def is_download(path: str) -> bool:
    """Whether a browser asks for it by itself, without the page's header, by a ticket."""
    return path.endswith("/export")
