"""One question to a program that speaks MCP on stdio, as a client of the era with a handshake."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence

from support.bridge_host import INITIALIZE, READY

PATIENCE_S = 300
"""A runner may install the program first."""


def ask_program(
    command: Sequence[str], variables: Mapping[str, str], sql: str, **arguments: str
) -> str:
    """The text of the answer to a query, with these arguments too. The program is started in the
    root directory, as desktop clients do, and ended with its input."""
    call = {"name": "query", "arguments": {"sql": sql, **arguments}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    line = ""
    with subprocess.Popen(
        command, env=dict(variables), cwd="/", text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        for message in (INITIALIZE, READY, request):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            line = process.stdout.readline() if "id" in message else ""
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert line, errors
    result = json.loads(line)["result"]
    text: str = result["content"][0]["text"]
    assert not result.get("isError"), text
    return text
