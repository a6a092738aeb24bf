"""A destination that is down is said wherever people and machines look, and by name only to those
who may see names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from support.command_line import serving, tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from support.free_ports import claim_port

pytestmark = pytest.mark.needs("console", "metrics")
PASSPHRASE = "correct horse 1"


def test_a_destination_that_is_down_is_said_in_the_log_probes_figures_console_and_by_doctor(
    tmp_path: Path,
) -> None:
    state, secret, file = tmp_path / "state", tmp_path / "passphrase", tmp_path / "tidegate.json"
    secret.write_text(PASSPHRASE + "\n")
    to = {"name": "siem-of-acme", "url": f"syslog://127.0.0.1:{claim_port()}"}
    metrics = claim_port()
    settings = {
        "console": {"enabled": True}, "metrics": {"listen": f"127.0.0.1:{metrics}"},
        "ship": {"to": [to], "poll_s": 0.05},
    }  # fmt: skip
    file.write_text(json.dumps(settings))
    words = ["--new-passphrase-file", str(secret), "--passphrase-file", str(secret)]
    assert tidegate("passphrase", "set", *words[:2], state=state).status == 0
    words += ["--config", str(file)]
    assert tidegate("operator", "add", "ada", *words, state=state).status == 0
    with serving(("serve", "--http", "127.0.0.1:0", "--config", str(file)), state) as server:
        where, said = server.all_of("the console is at", "shipping: fails")
        (address,) = re.findall(r"http://[^/]+", where)
        assert "siem-of-acme" in said
        assert "Connection refused" in said
        ready = httpx.get(f"{address}/ready", trust_env=False)
        assert (ready.status_code, ready.json()["degraded"]) == (
            200,
            {"shipping": "see the log of the server"},
        )
        figures = httpx.get(f"http://127.0.0.1:{metrics}/metrics", trust_env=False).text
        label = '{destination="siem-of-acme"}'
        assert f"tidegate_ship_failing{label} 1.0" in figures
        (size,) = re.findall(rf"tidegate_ship_lag_bytes{re.escape(label)} (\S+)", figures)
        assert float(size) > 0
        visitor = Visitor(address)
        visitor.sign_in(name="ada", passphrase=PASSPHRASE)
        problems = wait_until(
            lambda: visitor.get("now").json()["record"]["problems"], "the page has it"
        )
        assert "siem-of-acme" in problems["shipping"]
        visitor.client.close()
        ended = tidegate("doctor", "--config", str(file), state=state)
        assert "siem-of-acme" in ended.out + ended.err
