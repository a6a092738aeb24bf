"""Every verb of the command line, and what a person with the state directory may do by it.

A verb that has no row here fails `test_cli_matrix.py`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["gated", "reads", "considers", "connects", "keeps", "serves", "undoes"]
"""How a verb comes near a source.

`gated`: it passes the gate as the person, who only reads and whom every setting of the source
binds. `reads`: the same, and it takes no statement. `considers`: it asks what the gate would say
and runs nothing. `keeps`: it works on the state directory, or on settings of a client, and opens no
source. `connects`: as `keeps`, but it opens the new source, through the gate, to see whether it
works, and runs nothing there. `undoes`: it passes the gate as the person, who may write there, to
take a change back. `serves`: it lets others in, who pass the gate each for themselves.
"""


class Verb(NamedTuple):
    """`words` is one use of it; `{name}`, `{url}` and `{question}` are filled in. `status` is how
    that ends."""

    kind: Kind
    words: tuple[str, ...] = ()
    status: int = 0


VERBS: dict[str, Verb] = {
    "query": Verb("gated", ("query", "{name}", "{sql}")),
    "ask": Verb("gated", ("ask", "{name}", "{sql}", "--mode", "sql")),
    "source test": Verb("gated", ("source", "test", "{name}")),
    "source harden": Verb("gated", ("source", "harden", "{name}")),
    "doctor": Verb("gated", ("doctor", "--source", "{name}")),
    "tables": Verb("reads", ("tables", "{name}")),
    "describe": Verb("reads", ("describe", "{name}", "orders")),
    "export": Verb("reads", ("export", "{name}", "orders", "--directory", "{directory}")),
    "fixture check": Verb("keeps", ("fixture", "check", "{directory}/none.toml"), 2),
    "fixture refresh": Verb("keeps", ("fixture", "refresh", "{directory}/none.toml"), 2),
    "embed": Verb("reads", ("embed", "{name}", "customers", "full_name", "--status")),
    "search check": Verb("reads", ("search", "check", "{name}", "customers")),
    "explain": Verb("considers", ("explain", "{name}", "{sql}", "--json")),
    "judge": Verb("considers", ("judge", "{name}", "{sql}")),
    "config show": Verb("keeps", ("config", "show")),
    "config check": Verb("keeps", ("config", "check"), 2),
    "source list": Verb("keeps", ("source", "list")),
    "source show": Verb("keeps", ("source", "show", "{name}")),
    "source add": Verb("connects", ("source", "add", "other", "{url}")),
    "source edit": Verb("keeps", ("source", "edit", "{name}"), 2),
    "source update": Verb("keeps", ("source", "update", "{name}", "--approval-for", "writes")),
    "source rename": Verb("keeps", ("source", "rename", "{name}", "renamed")),
    "source remove": Verb("keeps", ("source", "remove", "{name}")),
    "driver fetch": Verb("keeps", ("driver", "fetch", "a:b:1-SNAPSHOT"), 2),
    "driver list": Verb("keeps", ("driver", "list")),
    "driver verify": Verb("keeps", ("driver", "verify")),
    "driver remove": Verb("keeps", ("driver", "remove", "a:b:1"), 2),
    "driver bundle": Verb("keeps", ("driver", "bundle", "{directory}/none.zip"), 2),
    "driver doctor": Verb("keeps", ("driver", "doctor", "jdbc:h2:./none"), 1),
    "cloud check": Verb("keeps", ("cloud", "check", "{directory}/none"), 65),
    "cloud pull": Verb("keeps", ("cloud", "pull", "github"), 78),
    "cloud import": Verb(
        "keeps", ("cloud", "import", "{directory}/none.yaml", "--provider", "shop"), 65
    ),
    "cloud snapshot": Verb(
        "gated",
        ("cloud", "snapshot", "{name}", "{sql}", "--overwrite", "--output", "{directory}/s.json"),
    ),
    "cloud diff": Verb("keeps", ("cloud", "diff", "{directory}/a.json", "{directory}/b.json"), 65),
    "cloud shell": Verb("keeps", ("cloud", "shell", "none"), 66),
    "datalog import": Verb("keeps", ("datalog", "import", "{name}", "{directory}/none.csv"), 2),
    "datalog copy": Verb("keeps", ("datalog", "copy", "{name}", "{directory}/copied"), 2),
    "datalog dump": Verb("keeps", ("datalog", "dump", "{name}", "{directory}/dumped"), 2),
    "datalog load": Verb("keeps", ("datalog", "load", "{name}", "{directory}/none.edn"), 2),
    "datalog stat": Verb("keeps", ("datalog", "stat", "{name}"), 2),
    "datalog migrate": Verb(
        "keeps", ("datalog", "migrate", "{name}", "--copy-to", "{directory}/new"), 2
    ),
    "datalog undo": Verb("keeps", ("datalog", "undo", "{name}"), 2),
    "datalog warm-up": Verb(
        "keeps", ("datalog", "warm-up", "--status", "--java", "{directory}/none"), 69
    ),
    "driver import": Verb("keeps", ("driver", "import", "{directory}/none.zip"), 2),
    "token create": Verb("keeps", ("token", "create", "mine", "--scope", "fullAccess")),
    "token show": Verb("keeps", ("token", "show", "agent")),
    "token edit": Verb("keeps", ("token", "edit", "agent", "--scope", "readOnly")),
    "token list": Verb("keeps", ("token", "list")),
    "token revoke": Verb("keeps", ("token", "revoke", "agent")),
    "budget list": Verb("keeps", ("budget", "list")),
    "budget set": Verb("keeps", ("budget", "set", "5", "calls/day", "--token", "agent")),
    "budget remove": Verb("keeps", ("budget", "remove", "calls/day", "--token", "agent"), 2),
    "state backup": Verb(
        "keeps", ("state", "backup", "{directory}/b", "--passphrase-file", "/dev/null"), 2
    ),
    "state copy": Verb("keeps", ("state", "copy", "{directory}/none"), 2),
    "state seal": Verb("keeps", ("state", "seal"), 78),
    "state restore": Verb(
        "keeps", ("state", "restore", "{directory}/none", "--passphrase-file", "/dev/null"), 2
    ),
    "approvals list": Verb("keeps", ("approvals", "list")),
    "approvals show": Verb("keeps", ("approvals", "show", "{question}")),
    "approvals allow": Verb("keeps", ("approvals", "allow", "{question}")),
    "approvals deny": Verb("keeps", ("approvals", "deny", "{question}")),
    "console": Verb("keeps", ("console", "--print", "--operator", "none"), 2),
    "operator add": Verb(
        "keeps", ("operator", "add", "me", "--new-passphrase-file", "/dev/null"), 2
    ),
    "operator roles": Verb("keeps", ("operator", "roles", "none", "--role", "viewer"), 2),
    "operator passphrase": Verb("keeps", ("operator", "passphrase", "none"), 2),
    "operator list": Verb("keeps", ("operator", "list")),
    "operator remove": Verb("keeps", ("operator", "remove", "none"), 2),
    "webhook test": Verb("keeps", ("webhook", "test"), 78),
    "changes": Verb("reads", ("changes", "--source", "{name}")),
    "undo": Verb("undoes", ("undo", "{change}")),
    "passphrase set": Verb("keeps", ("passphrase", "set", "--new-passphrase-file", "/dev/null"), 2),
    "passphrase remove": Verb("keeps", ("passphrase", "remove")),
    "pair ask": Verb("keeps", ("pair", "ask", "http://127.0.0.1:1", "--name", "me"), 69),
    "pair list": Verb("keeps", ("pair", "list")),
    "pair approve": Verb("keeps", ("pair", "approve", "AAAA-AAAA"), 2),
    "pair deny": Verb("keeps", ("pair", "deny", "AAAA-AAAA"), 2),
    "audit verify": Verb("keeps", ("audit", "verify")),
    "audit tail": Verb("keeps", ("audit", "tail")),
    "audit checkpoint": Verb("keeps", ("audit", "checkpoint")),
    "audit key": Verb("keeps", ("audit", "key")),
    "audit forget": Verb("keeps", ("audit", "forget", "none"), 2),
    "setup": Verb("connects", ("setup", "--url", "{url}", "--name", "other", "--client", "none")),
    "status": Verb("keeps", ("status",), 69),
    "health": Verb("keeps", ("health", "http://127.0.0.1:1"), 69),
    "stop": Verb("keeps", ("stop",), 69),
    "install": Verb("keeps", ("install", "cursor", "--print")),
    "completion": Verb("keeps", ("completion", "bash")),
    "version": Verb("keeps", ("version",)),
    "serve": Verb("serves"),
    "dtlv mcp": Verb("serves"),
    "bridge": Verb("serves"),
    "demo": Verb("serves"),
}

SERVE_FLAGS = {
    "--surface": "which tools; none grants more than the gate",
    "--source": "a source that is readOnly, or readWrite with --allow-writes",
    "--config": "a file that no other account may write",
    "--http": "callers hold tokens",
    "--pg": "callers log in with the name of a token and the token",
    "--console": "people with an account of their own, whom no token replaces",
    "--stdio": "the one client that started the process, as without --http",
    "--no-auth": "callers hold none: loopback alone, and they only read",
    "--allow-writes": "what --source names is readWrite, and the client at stdio may write",
    "--extended": "more tools, each with a row of its own",
    "--for-bridge": "a descriptor that is reported when bridges find the server",
    "--workers": "more processes of the same gate, with the same settings and callers",
    "--worker": "descriptors that the parent gave: which of its workers a process is",
    "--state": "where tokens and approvals are kept",
    "--tls-cert": "HTTPS instead of HTTP; no further caller",
    "--tls-key": "the key of the certificate, which no other account may read",
    "--proxy": "a source that is readOnly, or readWrite with --allow-writes, on another server",
    "--token-file": "the scopes that a file gives, which no other account may read",
}
"""What each flag of `serve` grants: a flag that appears is to be thought about here."""

REFUSED_TO_SERVE = (
    ("serve", "--no-auth", "--http", "0.0.0.0:0"),
    ("serve", "--surface", "none"),
    ("serve", "--console"),
    ("serve", "--console", "--http", "0.0.0.0:0"),
    ("serve", "--http", "127.0.0.1:0", "--tls-cert", "/absent.pem", "--tls-key", "/absent.key"),
    ("serve", "--tls-cert", "/absent.pem", "--http", "127.0.0.1:0"),
    ("serve", "--config", '{"auth": false, "http": "0.0.0.0:0"}'),
    ("serve", "--proxy", "postgresql://edge@127.0.0.1:1/cloud"),
    ("serve", "--config", '{"audit": {"failure_mod": "best_effort"}}'),
)
