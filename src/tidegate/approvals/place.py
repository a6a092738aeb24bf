"""Where a person can answer a question, in words for the one who asked it.

Callers read these words, so they hold neither the id of a question nor a command that answers one:
an agent with a shell under the operator's own account must not learn here how to answer itself.
What is not known is not claimed: only a process that serves the console names its address.
"""

from __future__ import annotations

from tidegate.config.addresses import is_this_machine, parse_http_url

ON_MACHINE = "on the server's machine"
OPENED = f"the Inbox, which `tidegate console` {ON_MACHINE} opens"
"""The Inbox where this process does not serve it, and Tidegate is installed."""


def name_opener() -> str:
    """The Inbox where this process does not serve it, with the command as a person types it."""
    from tidegate.config.installation import as_typed  # lazily: it loads every product's entry

    return as_typed(OPENED)


def name_inbox(address: str) -> str:
    """The Inbox of the console at this address, for the middle of a sentence; empty if this process
    serves none."""
    if not address:
        return name_opener()
    place = f"the Inbox at {link_inbox(address)}"
    return f"{place} {ON_MACHINE}" if is_this_machine(parse_http_url(address).host) else place


def link_inbox(address: str, id: str = "") -> str:
    """The link to the Inbox of the console at this address, or to the card of one question."""
    card = f"/{id}" if id else ""
    return f"{address.rstrip('/')}/console#/inbox{card}"
