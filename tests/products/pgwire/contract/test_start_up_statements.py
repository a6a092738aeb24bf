"""What tools ask when they connect is answered on every kind of source."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.pq import ExecStatus

from products.pgwire.contract.start_up_statements import NOT_SUPPORTED, STATEMENTS
from support.wire_server import WireServer

ANSWERED = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}


@pytest.mark.parametrize("source", ["pg", "masked", "lite", "duck", "maria", "cloud"])
@pytest.mark.parametrize("tool", STATEMENTS)
def test_each_statement_of_a_tool_is_answered(
    server: WireServer, tool: str, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    failed: list[str] = []
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        for text in STATEMENTS[tool]:
            simple = gate.pgconn.exec_(text.encode())
            found = [simple]
            if ";" not in text:
                found.append(gate.pgconn.exec_params(text.encode(), []))
                found.append(gate.pgconn.exec_params(text.encode(), [], result_format=1))
            refused = [each for each in found if each.status not in ANSWERED]
            if (source, text) in NOT_SUPPORTED:
                assert refused, f"it is answered now: {text}"
                continue
            failed += [f"{text}\n  {each.error_message.decode()}" for each in refused]
    assert not failed, "\n".join(failed)
