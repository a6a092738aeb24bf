"""`tidegate console` opens the Inbox that a refusal names, whichever server the client talks to."""

from __future__ import annotations

import re

from products.console.support.console_place import PASSPHRASE, Place, query, ran
from support.command_line import serving, tidegate
from support.console_visitor import Visitor
from wire.wires import MODERN, HttpPeer


def test_it_opens_beside_a_server_without_the_console(place: Place, token: str) -> None:
    assert place.run("stop", "--all").status == 0
    without = ["serve", "--http", "127.0.0.1:0"]
    beside = ["console", "--print", "--operator", "ada"]
    with serving(without, place.state) as server, serving(beside, place.state) as console:
        agent = HttpPeer(_port(server.until("serving")), MODERN, capabilities={})
        agent.token = token
        assert "which `tidegate console` on the server's machine opens" in query(agent).text

        address, link = _opened(console.line())
        said = list(iter(console.diagnostic, "Serving. Press Ctrl-C to stop.\n"))
        assert not any("token" in line for line in said)  # a bridge needs none, nor do people
        visitor = Visitor(address)
        place.visitors.append(visitor)
        visitor.sign_in(link=link)
        (card,) = visitor.get("inbox").json()["pending"]
        body = {"digest": card["digest"], "passphrase": PASSPHRASE}
        assert visitor.post(f"inbox/{card['id']}/allow", body).json()["state"] == "allowed"

        assert ran(query(agent))
        assert _opened(tidegate(*beside, state=place.state).out)[0] == address


def _port(line: str) -> int:
    return int(re.findall(r":(\d+)", line)[0])


def _opened(line: str) -> tuple[str, str]:
    """The address and the secret of a link to the console."""
    found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/console#sign-in=(\S+)\n", line)
    assert found, line
    return found[1], found[2]
