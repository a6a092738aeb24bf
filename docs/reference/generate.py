"""Writes docs/reference from the code, or with --check fails if a page is not what it would write.

Each page is a function from the code's own values to Markdown; nothing here is written twice.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

import msgspec

from tidegate.cli import main as cli_main
from tidegate.cli import parser as cli_parser
from tidegate.cli.arguments.examples import example_of
from tidegate.cli.supported_clients import CLIENTS, Place
from tidegate.config.loading import section_kinds
from tidegate.config.model import Config
from tidegate.config.reload import FOLLOWED
from tidegate.errors import ERRORS
from tidegate.model.replies import Reply
from tidegate.model.requests import Call
from tidegate.model.source_settings import Setting
from tidegate.protocol.model import Tool
from tidegate.surfaces.registry import SURFACES, settings_model

HERE = Path(__file__).parent
WRITABLE = Config(allow_writes=True)
"""The settings that the tools are listed under: a tool that may change data must not look as if it
only read."""
NOTE = "<!-- Written by `./dev docs` from {origin}. Change that, not this. -->\n"


def errors() -> str:
    lines = [
        NOTE.format(origin="src/tidegate/errors.py"),
        "# Error codes",
        "",
        "Every refusal and failure has one code, which is the same on every edge. Each reply also "
        "says what to do next; the last column is what it says where nothing better is known.",
        "",
        "A request over HTTP that is refused before MCP serves it (for its token, its rate, its "
        "`Host`, or since the state cannot be read) is answered with that status and a JSON-RPC "
        "error, whose `data` has the `code`, the `hint` and `retry_after_s`, the same seconds as "
        "`Retry-After`. It has the `id` of the request if the body came with the head or, up to "
        "64 kB, within half a second; a client that sends `Expect: 100-continue` is refused at "
        "once, without the `id`. The Python SDK 2.x shows the message and the data only where the "
        "`id` is there; the Python SDK 1.x shows the status alone, and ends its connection.",
        "",
        "| Code | JSON-RPC | HTTP | SQLSTATE | Exit status | What to do |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{code.value}` | {each.rpc} | {each.http} | {each.sqlstate} | {each.exit_status} "
        f"| {each.hint} |"
        for code, each in ERRORS.items()
    ]
    return "\n".join(lines) + "\n"


def settings() -> str:
    lines = [
        NOTE.format(origin="src/tidegate/config/model.py"),
        "# Settings",
        "",
        "`--config` takes a TOML, YAML or JSON file, or an inline JSON object; without it "
        "`$TIDEGATE_CONFIG` does, if it is set. Options of the command line override it. The "
        "commands that ask a source or change the state take the same settings as `serve`, so that "
        "masks, filters and identities apply to the person there, too. An unknown setting is an "
        "error that names it.",
        "",
        "A server watches its file. A change of these settings takes effect on the next call: "
        + ", ".join(f"`{name}`" for name in sorted(FOLLOWED))
        + ". While the file cannot be used, no call is let through. A change of any other setting "
        "takes effect when the server starts again; its log says so once.",
    ]
    pending: list[tuple[str, type[msgspec.Struct]]] = [("", Config)]
    kinds = section_kinds()
    pending += [(f"{name}.", kind) for name, kind in kinds.items()]
    for surface in SURFACES:
        if (own := settings_model(surface)) is not None:
            pending.append((f"surface.{surface}.", own))
    while pending:
        path, model = pending.pop(0)
        lines += ["", f"## {'`' + path + '`' if path else 'All settings'}", ""]
        meanings = _meanings(model)
        lines += [_paragraphs(model.__doc__), ""]
        lines += [f"| Setting | Type | Default |{' Meaning |' if meanings else ''}"]
        lines += [f"|---|---|---|{'---|' if meanings else ''}"]
        hints = get_type_hints(model)
        for field in msgspec.structs.fields(model):
            if model is Config and field.name == "sections":
                lines += [f"| `{name}` | table | see below |" for name in kinds]
                continue
            inner, suffix = _nested(hints[field.name])
            name = f"{path}{field.name}"
            if inner is not None:
                pending.append((f"{name}{suffix}.", inner))
            cells = f"| `{name}` | {_type(hints[field.name])} | {_default(field, inner)} |"
            lines.append(f"{cells} {meanings.get(field.name, '')} |" if meanings else cells)
    return "\n".join(lines) + "\n"


def _meanings(model: type[msgspec.Struct]) -> dict[str, str]:
    """What the model's source says of its fields, by the field's name: what is declared of it, and
    the text below it."""
    found: dict[str, str] = {}
    parts = [each for each in model.__mro__ if issubclass(each, msgspec.Struct)]
    for part in reversed(parts[:-1]):  # what it inherits first; the last is msgspec's own
        for name, hint in inspect.get_annotations(part, eval_str=True).items():
            for about in (each for each in get_args(hint) if isinstance(each, Setting)):
                found[name] = f"{about.meaning[:1].upper()}{about.meaning[1:]}."
        (definition,) = ast.parse(inspect.getsource(part)).body
        for field, below in pairwise(cast("ast.ClassDef", definition).body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join([*filter(None, [found.get(name)]), *text.split()])
                case _:
                    pass
    return found


def _nested(hint: Any) -> tuple[type[msgspec.Struct] | None, str]:
    """The model inside a field, and `[]` if the field is a list of them, `.NAME` if a table."""
    if get_origin(hint) is tuple:
        return _nested(get_args(hint)[0])[0], "[]"
    if get_origin(hint) is dict:
        return _nested(get_args(hint)[1])[0], ".NAME"
    for each in (hint, *get_args(hint)):  # a table, or one that may be left out
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each, ""
    return None, ""


def _type(hint: Any) -> str:
    shown = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return f"list of {_type(arguments[0])}"
    if get_origin(hint) is dict:
        is_free = Any in (arguments[1], *get_args(arguments[1]))
        return "table" if is_free else f"table of {_type(arguments[1])}"
    if type(None) in arguments:
        return f"{_type(arguments[0])}, or none"
    if _nested(hint)[0] is not None:
        return "table"
    if arguments:
        return " or ".join(f"`{choice}`" for choice in arguments)
    return shown[hint]


def _default(field: msgspec.structs.FieldInfo, inner: type[msgspec.Struct] | None) -> str:
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return "none"
    if inner is not None or field.default is None:
        return "none" if field.default in ((), None) else "see below"
    return f"`{msgspec.json.encode(field.default).decode()}`"


def _paragraphs(docstring: str | None) -> str:
    return "\n".join(line.strip() for line in (docstring or "").strip().splitlines())


def command_line() -> str:
    lines = [
        NOTE.format(origin="src/tidegate/cli/parser.py"),
        "# The command line",
        "",
        "An option cannot be abbreviated. A failure is one line on standard error, of the form "
        "`tidegate: what is wrong. What to do.`, and an exit status other than 0. `tidegate` alone "
        "prints the names of the commands there, and ends with 2.",
    ]
    for summary, command in _leaves(cli_parser.build()):
        lines += ["", f"## {command.prog}", "", command.description or summary]
        lines += ["", "```text", _usage(command), "```", ""]
        example = example_of(command.prog.partition(" ")[2])
        lines += [f"Example: `{example}`", ""] if example else []
        arguments = [f"| {_cell(action)} | {action.help} |" for action in _arguments(command)]
        lines += ["| Argument | Meaning |", "|---|---|", *arguments] if arguments else []
    lines += ["", "## Exit statuses", "", "| Status | When | Codes |", "|---|---|---|"]
    lines += [f"| {status} | {when} | {codes} |" for status, when, codes in _statuses()]
    return "\n".join(lines) + "\n"


MEANINGS = {
    2: "the command or the statement is not well-formed",
    65: "the database could not run the statement",
    66: "something that was named is not there",
    69: "something that is needed is not available",
    70: "a fault of Tidegate itself",
    74: "the state directory, a record or the output cannot be read or written",
    75: "it may work later",
    77: "it is not allowed",
    78: "a setting is wrong",
}


def _statuses() -> Iterator[tuple[int, str, str]]:
    yield cli_main.OK, "done", ""
    yield 1, "`audit verify` found a change, or `doctor` a fault", ""
    yield 3, "`audit verify` found no change, but could not check all of it", ""
    for status in sorted({each.exit_status for each in ERRORS.values()}):
        codes = [f"`{code.value}`" for code, each in ERRORS.items() if each.exit_status == status]
        yield status, MEANINGS[status], ", ".join(codes)
    yield cli_main.INTERRUPTED, "interrupted from the keyboard (`serve` ends with 0)", ""
    yield cli_main.READER_GONE, "the reader of the output has closed it", ""


def _leaves(
    parser: argparse.ArgumentParser, summary: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """(what it does, its parser) of every command that can be run."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                yield from _leaves(child, helps[name][:1].upper() + helps[name][1:] + ".")
            return
    yield summary, parser


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions
        if action.dest != "help" and action.help != argparse.SUPPRESS
    ]


def _signature(action: argparse.Action) -> str:
    shown = action.metavar or "|".join(map(str, action.choices or ()))
    value = shown if isinstance(shown, str) else " ".join(shown)
    return " ".join(part for part in (*action.option_strings[-1:], value) if part)


def _cell(action: argparse.Action) -> str:
    return f"`{_signature(action)}`".replace("|", "\\|")


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog]
    for action in _arguments(parser):
        text = _signature(action)
        if action.option_strings and not action.required:
            repeats = isinstance(action.default, list)
            text = f"[{text}]{'...' if repeats else ''}"
        words.append(text)
    return " ".join(words)


def tools() -> str:
    lines = [
        NOTE.format(origin="src/tidegate/surfaces"),
        "# Tools",
        "",
        "What each surface offers. `--surface NAME` picks one on stdio; over HTTP each has its own "
        "path, `/mcp/NAME`. A tool that only reads is marked so for clients that ask a person "
        "before they call any other.",
    ]
    for name in SURFACES:
        surface = import_module(SURFACES[name].module).surface(_NoGate(), config=WRITABLE)
        lines += ["", f"## {name}", "", surface.instructions or ""]
        usual = surface.listed_tools()
        lines += [line for tool in usual for line in _tool(tool)]
        names = {tool.name for tool in usual}
        more = [tool for tool in _extended_tools(name) if tool.name not in names]
        if more:
            lines += ["", f"## {name} with `--extended` or `surface.{name}.extended = true`", ""]
            lines += ["The tools above, and these."]
        lines += [line for tool in more for line in _tool(tool)]
    return "\n".join(lines) + "\n"


def _extended_tools(name: str) -> Sequence[Tool]:
    """The tools of a surface with its setting `extended`, if it has one."""
    model = settings_model(name)
    if model is None or "extended" not in model.__struct_fields__:
        return ()
    settings = model(extended=True)
    surface = import_module(SURFACES[name].module).surface(
        _NoGate(), config=WRITABLE, settings=settings
    )
    return surface.listed_tools()


class _NoGate:
    """Takes the place of the gate; a listing never calls it."""

    async def handle(self, call: Call) -> Reply:
        raise NotImplementedError


def _tool(tool: Tool) -> Iterator[str]:
    reads = tool.annotations is not None and tool.annotations.read_only_hint
    yield from ("", f"### {tool.name}", "", f"{tool.description}{' (only reads)' if reads else ''}")
    schema = tool.input_schema
    if schema.get("properties"):
        yield from ("", "| Argument | Type | Needed | Meaning |", "|---|---|---|---|")
    for name, shape in schema.get("properties", {}).items():
        needed = "yes" if name in schema.get("required", ()) else ""
        meaning = str(shape.get("description", "")).replace("|", "\\|")
        yield f"| `{name}` | {_shape(shape)} | {needed} | {meaning} |"


def _shape(shape: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "enum" in shape:
        return " or ".join(f"`{choice}`" for choice in shape["enum"])
    if "anyOf" in shape:
        return " or ".join(_shape(each) for each in shape["anyOf"])
    text = str(shape.get("type", "any"))
    if text == "array":
        return f"array of {_shape(shape.get('items', {}))}"
    if "minimum" in shape and "maximum" in shape:
        return f"{text}, {shape['minimum']} to {shape['maximum']}"
    return f"{text}, at least {shape['minimum']}" if "minimum" in shape else text


def clients() -> str:
    lines = [
        NOTE.format(origin="src/tidegate/cli/supported_clients.py"),
        "# Clients",
        "",
        "`tidegate install CLIENT` and `tidegate setup` write the entry for these clients, and "
        "`tidegate doctor` starts it. The variable replaces the folder of the file if it is set. "
        "With `--scope project` the entry is in a file of the directory in which you are.",
        "",
        "| Client | Name | Your settings | Variable | Settings of a project | Entries are in "
        "| A server on HTTP |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, client in CLIENTS.items():
        project = "" if client.project is None else _file(client.project)
        default = " (default)" if client.scope == "project" else ""
        variable = f"`{client.user.variable}`" if client.user.variable else ""
        keys = [f"`{'.'.join(key)}`" for key in (client.key, client.newer_key) if key]
        form = client.form
        if form.address is None:
            remote = "by mcp-remote"
        elif form.token_variable or form.reference:
            remote = f"`{form.address}`; signs in, or takes a token"
        else:
            remote = f"`{form.address}`; signs in"
        lines.append(
            f"| {client.title} | `{name}` | {_file(client.user)} | {variable} | {project}{default} "
            f"| {' or '.join(keys)} | {remote} |"
        )
    return "\n".join(lines) + "\n"


def _file(place: Place) -> str:
    """A settings file as it is on Linux."""
    shown = {"{applications}": "~/.config", "{config}": "~/.config", "{linux-config}": "~/.config"}
    base, _, rest = place.folder.partition("/")
    folder = "/".join(part for part in (shown.get(base, base), rest) if part not in ("", "."))
    names = [place.file, *place.others]
    return " or ".join(f"`{folder}/{name}`" if folder else f"`{name}`" for name in names)


PAGES: dict[str, Callable[[], str]] = {
    "errors.md": errors,
    "clients.md": clients,
    "settings.md": settings,
    "cli.md": command_line,
    "tools.md": tools,
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    check = arguments.parse_args().check
    stale = 0
    for name, page in PAGES.items():
        path, text = HERE / name, page()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale += 1
        if check:
            print(
                f"docs/reference/{name} is not what the code says: run ./dev docs", file=sys.stderr
            )
        else:
            path.write_text(text, "utf-8")
            print(f"wrote docs/reference/{name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
