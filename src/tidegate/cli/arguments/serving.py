"""The arguments of `serve`, `bridge`, `install` and `demo`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    SCOPES,
    Commands,
    ahead_option,
    config_option,
    consent_option,
    filled,
    home_options,
    json_option,
    keep_option,
    seconds,
    state_option,
)
from tidegate.cli.hooks import command_hooks
from tidegate.cli.supported_clients import CLIENTS
from tidegate.product import built_in


def add_serve(commands: Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve MCP on stdio, or on HTTP with --http",
        description="Serve MCP on stdio, on HTTP with --http, or on both with --stdio --http. "
        "With --pg psql and drivers of PostgreSQL can use the same sources. "
        "SIGTERM and SIGINT stop the server (SIGTERM after `drain_delay_s`, in which `/ready` "
        "answers 503): running calls get `stop_grace_s` seconds to finish, "
        "none after a second signal. SIGHUP reads the settings file and the certificate again. On "
        "stdio alone the server also stops at the end of the input.",
    )
    serve.set_defaults(module="serve")
    surfaces = {name: entry for each in built_in() for name, entry in each.surfaces.items()}
    *others, last = ("core", *sorted(surfaces))
    extended = sorted(name for name, entry in surfaces.items() if entry.extended)
    serve.add_argument(
        "--surface",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a set of tools to serve: {', '.join(others)} or {last}; may be repeated (default: "
        "core, and over HTTP also each of them at a path of its own)",
    )
    serve.add_argument(
        "--source",
        action="append",
        default=[],
        type=named_url,
        metavar="NAME=URL",
        help="open a source for this run, such as shop=sqlite:///shop.db; may be repeated",
    )
    config_option(
        serve,
        "a TOML, YAML or JSON file, or an inline JSON object (default: $TIDEGATE_CONFIG, else "
        "none)",
    )
    _address_options(serve)
    for hook in command_hooks():
        hook.add_serve_options(serve)
    serve.add_argument(
        "--token-file",
        action="append",
        default=[],
        type=filled,
        metavar="FILE",
        help="accept the tokens of this file as well; read again when it changes; may be repeated",
    )
    serve.add_argument(
        "--console",
        action="store_true",
        help="serve the console, pages for people who approve calls, at /console of --http",
    )
    serve.add_argument("--stdio", action="store_true", help="serve stdio as well as --http")
    serve.add_argument(
        "--no-auth",
        action="store_true",
        help="turn off authentication; allowed on loopback, for reading only",
    )
    serve.add_argument(
        "--allow-writes",
        action="store_true",
        help="allow writes to the sources given with --source, and by the client on stdio",
    )
    serve.add_argument(
        "--extended",
        action="store_true",
        help=f"add newer tools to those in the specifications of {' and '.join(extended)}",
    )
    serve.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="serve by so many processes, for several cores; SIGUSR2 replaces them one by one "
        "(default: 1)",
    )
    serve.add_argument(
        "--worker",
        metavar="PLACE",
        # For `serve --workers` only: which of its processes this is, and its descriptors.
        help=argparse.SUPPRESS,
    )
    serve.add_argument(
        "--for-bridge",
        type=int,
        metavar="FD",
        # For `tidegate bridge` only: the server writes a line to it when bridges can find it.
        help=argparse.SUPPRESS,
    )
    state_option(serve)


def _address_options(serve: argparse.ArgumentParser) -> None:
    """The options that say where it listens, and with which certificate."""
    serve.add_argument(
        "--http",
        type=filled,
        metavar="HOST:PORT",
        help="serve HTTP there instead of stdio; port 0 takes a free one",
    )
    serve.add_argument(
        "--tls-cert",
        type=filled,
        metavar="FILE",
        help="use TLS with this certificate, a PEM file that ends with the chain",
    )
    serve.add_argument(
        "--tls-key", type=filled, metavar="FILE", help="the key of the certificate, a PEM file"
    )


def add_config(commands: Commands) -> None:
    config = commands.add_parser("config", help="check the settings file, or show what it says")
    actions = config.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="read the settings as a server would, and name what is wrong"
    )
    show = actions.add_parser("show", help="show the settings in force as one JSON object")
    show.add_argument("--all", action="store_true", help="also those that are as by default")
    for action in (check, show):
        action.set_defaults(module="config")
        home_options(action)


def add_bridge(commands: Commands) -> None:
    bridge = commands.add_parser(
        "bridge",
        help="connect stdio to the HTTP server of this state, which is started if none runs",
        description="Connect MCP on stdio to the HTTP server of the same state directory. If none "
        "runs, start one, which stops after `bridge.idle_s` without requests. No token is needed. "
        "The section `bridge` of the server's settings says what bridges may do; --scope, "
        "--source and --table restrict that further.",
    )
    bridge.set_defaults(module="bridge")
    bridge.add_argument(
        "--surface",
        type=filled,
        metavar="NAME",
        help="the set of tools to use (default: core, or the first that the server names)",
    )
    bridge.add_argument("--scope", choices=SCOPES, help="the most that it may do")
    _share_options(bridge)
    bridge.add_argument(
        "--first-source-env",
        type=filled,
        metavar="NAME",
        help="add the database whose URL is in this variable, for reading, if this state never "
        "had a source, a token or a server: for clients that ask a person for the URL",
    )
    config_option(
        bridge, "the settings of a server that the bridge starts (default: $TIDEGATE_CONFIG)"
    )
    state_option(bridge)


def _share_options(parser: argparse.ArgumentParser) -> None:
    """The options that restrict the sources and tables of a bridge."""
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help="a source that it may see (default: those in the settings); may be repeated",
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="a table that it may use, as table, schema.table or source:table (default: those in "
        "the settings); may be repeated",
    )


def add_install(commands: Commands) -> None:
    install = commands.add_parser(
        "install",
        help="write the entry for Tidegate into a client's settings",
        description="Write the entry for Tidegate into a client's settings, and nothing else: "
        "everything else in the file stays as it is, comments too. A copy of the old file is kept "
        "next to it, with the ending .tidegate.bak. Without a client, list those that are found "
        "here. For a client that is not known, show what to put into its settings.",
    )
    install.set_defaults(module="install")
    shared = ", ".join(name for name, client in CLIENTS.items() if client.scope == "project")
    install.add_argument(
        "client", nargs="?", help=f"whose settings: {', '.join(CLIENTS)}", metavar="CLIENT"
    )
    install.add_argument(
        "--all",
        action="store_true",
        help="write it for each client that is found here, once you have seen and confirmed which",
    )
    install.add_argument(
        "--name", default="tidegate", help="the name of the entry (default: tidegate)"
    )
    install.add_argument(
        "--scope",
        choices=("user", "project"),
        help=f"all your projects, or the one in this directory (default: user; {shared}: project)",
    )
    how = install.add_mutually_exclusive_group()
    how.add_argument(
        "--bridge", action="store_true", help="by way of `tidegate bridge` (the default)"
    )
    how.add_argument(
        "--stdio", action="store_true", help="let the client start a server of its own on stdio"
    )
    how.add_argument(
        "--http",
        type=filled,
        metavar="URL",
        help="let the client use the running server at URL, where it signs in by itself unless "
        "--token-env names a token",
    )
    install.add_argument(
        "--token-env",
        metavar="NAME",
        help="with --http, the variable from which the client takes a token",
    )
    install.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME",
        help="a variable that sources name: a user's entry gets its value, a project's entry a "
        "reference to it; may be repeated",
    )
    install.add_argument(
        "--surface", type=filled, metavar="NAME", help="the set of tools to use (default: core)"
    )
    config_option(install, "settings that the entry names (default: $TIDEGATE_CONFIG)")
    install.add_argument(
        "--bridge-scope", choices=SCOPES, help="the most that the bridge may do: its --scope"
    )
    _share_options(install)
    ahead_option(install)
    instead = install.add_mutually_exclusive_group()
    instead.add_argument("--print", action="store_true", help="show the entry and write nothing")
    instead.add_argument(
        "--link",
        action="store_true",
        help="show a link that has the client add the entry when it is opened ("
        + ", ".join(name for name, client in CLIENTS.items() if client.link)
        + "), and write nothing",
    )
    instead.add_argument("--remove", action="store_true", help="remove the entry")
    install.add_argument("--force", action="store_true", help="replace an entry of that name")
    state_option(install, "the state that the entry names (default: $TIDEGATE_STATE)")


def add_setup(commands: Commands) -> None:
    setup = commands.add_parser(
        "setup",
        help="add a database and write a client's entry, in one go",
        description="Ask for a database's URL and its password, try them, save them, and write the "
        "entry into a client's settings. It does not ask for what the options give, and without a "
        "terminal asks nothing. It saves nothing before everything works.",
    )
    setup.set_defaults(module="setup")
    setup.add_argument("--url", type=filled, metavar="URL", help="the database, or its file")
    setup.add_argument("--name", type=filled, metavar="NAME", help="the name that callers use")
    setup.add_argument(
        "--password-stdin",
        action="store_true",
        help="take the password from the first line of standard input",
    )
    keep_option(setup)
    setup.add_argument(
        "--client",
        choices=(*CLIENTS, "none"),
        metavar="CLIENT",
        help=f"whose settings get the entry: {', '.join(CLIENTS)}, none",
    )
    setup.add_argument("--force", action="store_true", help="replace another entry `tidegate`")
    consent_option(setup)
    home_options(setup)


def add_status(commands: Commands) -> None:
    status = commands.add_parser(
        "status",
        help="show the servers of this state",
        description="Show the servers that run for this state directory. Of the one on HTTP that "
        "bridges use it shows its process, version, address, surfaces, sources, and whether its "
        "record can be written; of each other one its process, version and places.",
    )
    status.set_defaults(module="status")
    json_option(status)
    home_options(status)
    stop = commands.add_parser(
        "stop",
        help="end the server of this state",
        description="Ask the server of this state directory to stop. Running calls get "
        "`stop_grace_s` seconds to finish. Where several listen, name one or all; servers that a "
        "client started on stdio for itself end with the client, or by --all.",
    )
    stop.set_defaults(module="stop")
    which = stop.add_mutually_exclusive_group()
    which.add_argument(
        "pid", nargs="*", type=int, metavar="PROCESS", default=[], help="a server, by its process"
    )
    which.add_argument("--all", action="store_true", help="every server of this state")
    home_options(stop)


def add_health(commands: Commands) -> None:
    health = commands.add_parser(
        "health",
        help="ask a server whether it is ready, for probes",
        description="Ask a server whether it is ready, as a probe of a container does where no "
        "curl is. The exit status is 0 if it is. Over HTTPS the certificate is not checked: "
        "nothing secret is sent.",
    )
    health.set_defaults(module="health")
    health.add_argument(
        "url",
        nargs="?",
        type=filled,
        metavar="URL",
        help="what is asked, such as http://127.0.0.1:7878/health (default: /ready at the `http` "
        "of the settings)",
    )
    health.add_argument(
        "--timeout",
        type=seconds,
        default=5.0,
        metavar="S",
        help="how long the answer may take (default 5)",
    )
    home_options(health)


def add_doctor(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="check everything that can be wrong, and say what to do",
        description="Check Python and its extras, the settings, the state directory, the server, "
        "every source, the audit log, the entries of clients, disk, clock and terminal. A line "
        "begins with ok, note (it works, and something could be better) or fault, and says one "
        "thing to do. The exit status is 1 if there is a fault. Sources are opened through the "
        "gate, which records it; entries of clients are started and ended; nothing else happens.",
    )
    doctor.set_defaults(module="doctor")
    doctor.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help="a source to check, instead of all; may be repeated",
    )
    doctor.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="how long a source, a client or the audit log may take (default 10)",
    )
    json_option(doctor)
    home_options(doctor)


def add_completion(commands: Commands) -> None:
    completion = commands.add_parser(
        "completion",
        help="print the script by which a shell completes commands and names",
        description="Print the script by which a shell completes the commands, the options, and "
        "the names of saved sources, tokens and approvals. In ~/.bashrc or ~/.zshrc write "
        'eval "$(tidegate completion bash)", or zsh; for fish save the output as '
        "~/.config/fish/completions/tidegate.fish.",
    )
    completion.set_defaults(module="completion")
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )


def add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="serve a sample shop on loopback and show a few calls",
        description="Create a sample database, serve it on loopback, show a few calls as an agent "
        "makes them, then keep serving and print the configuration for your clients.",
    )
    demo.set_defaults(module="demo", demo_sources=[])
    demo.add_argument("--once", action="store_true", help="exit after the calls")
    for product in built_in():
        if product.demo_source is not None:
            demo.add_argument(
                f"--{product.name}",
                dest="demo_sources",
                action="append_const",
                const=product.demo_source,
                help=product.demo_source.help,
            )
    demo.add_argument(
        "--port",
        type=int,
        default=8765,
        metavar="PORT",
        help="the port (default 8765); another one if it is in use",
    )
    state_option(demo, "holds the sample and all state (default: a temporary directory)")


def named_url(text: str) -> tuple[str, str]:
    """`NAME=URL` as a pair."""
    name, sign, url = text.partition("=")
    if not (name and sign and url):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=URL")
    return name, url
