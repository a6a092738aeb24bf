"""An example of each command of the kernel, for its help. A test parses every one, and runs those
that only read."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.product import found_already

EXAMPLES: Mapping[str, str] = {
    "setup": "setup --url postgresql://ann@db.example/shop --client cursor",
    "serve": "serve --http 127.0.0.1:8080",
    "bridge": "bridge --surface core",
    "install": "install claude-desktop",
    "status": "status --json",
    "stop": "stop",
    "health": "health http://127.0.0.1:7878/ready",
    "doctor": "doctor --source shop",
    "config check": "config check --config tidegate.toml",
    "config show": "config show --config tidegate.toml",
    "source add": "source add shop sqlite:////data/shop.db --mask customers.email=hash",
    "source update": "source update shop --access write --approval-for writes",
    "source edit": "source edit shop",
    "source rename": "source rename shop store",
    "source list": "source list --like shop",
    "source remove": "source remove shop",
    "source show": "source show shop",
    "source test": "source test shop",
    "source harden": "source harden shop --apply",
    "query": "query shop 'SELECT * FROM orders WHERE id = ?' 7 --format csv",
    "export": "export shop orders customers --directory out --format parquet",
    "tables": "tables shop",
    "describe": "describe shop orders customers",
    "embed": "embed shop customers note --status",
    "search check": "search check shop customers",
    "judge": "judge --dialect postgres 'DELETE FROM orders'",
    "explain": "explain shop 'SELECT * FROM orders' --token-name analyst",
    "token create": "token create analyst --scope readOnly --source shop --expires 30d",
    "token edit": "token edit analyst --scope readWrite",
    "token show": "token show analyst",
    "token list": "token list",
    "token revoke": "token revoke analyst",
    "budget set": "budget set 500 calls/minute --token analyst --source shop",
    "budget list": "budget list",
    "budget remove": "budget remove calls/minute --token analyst --source shop",
    "approvals list": "approvals list --watch",
    "approvals show": "approvals show 5a4df4765f",
    "approvals allow": "approvals allow 5a4df4765f",
    "approvals deny": "approvals deny 5a4df4765f --reason 'not on a Friday'",
    "operator add": "operator add ada --role approver --source shop",
    "operator roles": "operator roles ada --role viewer",
    "operator passphrase": "operator passphrase ada",
    "operator list": "operator list",
    "operator remove": "operator remove ada",
    "webhook test": "webhook test --config tidegate.toml",
    "changes": "changes --source shop",
    "undo": "undo 3f9c5a4df476",
    "passphrase set": "passphrase set",
    "passphrase remove": "passphrase remove",
    "pair ask": "pair ask https://gate.example --name laptop",
    "pair list": "pair list",
    "pair approve": "pair approve 3f9c --scope readOnly",
    "pair deny": "pair deny 3f9c",
    "audit verify": "audit verify",
    "audit tail": "audit tail --since yesterday",
    "audit checkpoint": "audit checkpoint",
    "audit key": "audit key",
    "audit forget": "audit forget 903f41fe78a46192",
    "demo": "demo",
    "completion": "completion bash",
    "version": "version",
}
"""By the words of a command, without `tidegate`."""


def example_of(command: str) -> str | None:
    """The example of a command, or of the first action of a group; "" is the whole."""
    word = command.partition(" ")[0]
    entries = (each.commands[word] for each in found_already() if word in each.commands)
    entry = next(entries, None)
    examples = EXAMPLES if entry is None else entry.examples
    found = examples.get(command)
    if found is None:
        found = next((text for name, text in examples.items() if name.startswith(command)), None)
    return None if found is None else f"tidegate {found}"
