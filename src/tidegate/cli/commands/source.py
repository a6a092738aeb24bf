"""`tidegate source add | edit | update | rename | list | remove | show | test | harden`."""

from __future__ import annotations

import argparse
import difflib
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.entry_extras import note_lacking
from tidegate.cli.hooks import command_hooks, prepare_source
from tidegate.cli.listing import chosen
from tidegate.cli.local_actor import LocalCaller, with_app
from tidegate.cli.settings import config_path, load_for_query, load_for_state
from tidegate.cli.source_check import (
    Tried,
    absolute_file_url,
    given_password,
    kept_password,
    print_problems,
    require_success,
    source_changes,
    try_source,
)
from tidegate.cli.source_edit import ask_changes
from tidegate.cli.source_harden import apply_script, print_script
from tidegate.cli.source_options import given_settings
from tidegate.cli.source_report import report_of, show_report
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.identity.bridge_tokens import NAME as BRIDGE
from tidegate.identity.builtin_actors import ANONYMOUS, cli, stdio
from tidegate.model.sources import Source
from tidegate.policy.widening import widened
from tidegate.secrets.url_logins import without_password
from tidegate.sources.kept_passwords import check_place
from tidegate.sources.settings import changed_source, settings_of
from tidegate.sources.unfit_rules import unfit_rules
from tidegate.store.passwords import Passwords, place_of_password


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    if arguments.action == "add":
        _add(arguments)
        return 0
    if arguments.action == "update":
        _update(arguments)
        return 0
    if arguments.action == "edit":
        _edit(arguments)
        return 0
    if arguments.action == "harden" and arguments.apply:
        apply_script(arguments)
        return 0
    actions = {
        "list": _list, "show": _show, "remove": _remove, "rename": _rename, "test": _test,
        "harden": print_script,
    }  # fmt: skip
    opens = arguments.action in ("test", "harden")
    config = load_for_query(arguments) if opens else load_for_state(arguments)
    with_app(App.open(config), partial(actions[arguments.action], arguments=arguments))
    return 0


def _rules(arguments: argparse.Namespace, before: Source | None = None) -> dict[str, Any]:
    """The given settings of a source by name; `before` is the source before a change."""
    rules = given_settings(arguments, before)
    for hook in command_hooks():
        if found := hook.source_options(arguments):
            kept = rules.get("options", {} if before is None else dict(before.options))
            rules["options"] = {**kept, **found}
    return rules


def _add(arguments: argparse.Namespace) -> None:
    config = load_for_state(arguments)
    settings = SourceSettings(arguments.name, absolute_file_url(arguments.url), **_rules(arguments))
    if _saved(config, settings.name) is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is already a source `{settings.name}`.",
            hint="Use another name, or change it with `tidegate source update`.",
        )
    prepare_source(config, settings, arguments)
    tried = _tried(config, settings, arguments, "source add", "The source was not added.")
    with kept_password(config, tried, arguments.keep_in or "file") as settings:
        app = App.open(msgspec.structs.replace(config, sources=(settings,)))
        with_app(app, partial(_save_added, arguments=arguments))


def save_new(
    app: App, name: str, arguments: argparse.Namespace, *, no_word: bool = False
) -> Source:
    """Record and save a source that the settings name, once a person agrees.

    Raises: TidegateError OPERATOR_CONSENT, ARGUMENT_INVALID if one of its name is saved.
    """
    source = _given(app, name)
    what = f"add the source {source.name} ({source.access})"
    no_word = no_word or not app.granted_rights.exist
    require_consent(app, "add", what, arguments, no_word=no_word)
    source_changes(app).add(source)
    print_status(f"added {source.name} ({source.engine}, {source.access})")
    return source


async def _save_added(app: App, arguments: argparse.Namespace) -> None:
    source = save_new(app, arguments.name, arguments)
    _warn_of_callers(app, arguments)
    await _warn_of_rules(app, source, arguments)
    note_lacking(app)


def _tried(
    config: Config,
    settings: SourceSettings,
    arguments: argparse.Namespace,
    tool: str,
    undone: str,
    password: str | None = None,
) -> Tried:
    """The source as it was reached, or as the operator wants it anyway; `password` is the one that
    it has and that is kept elsewhere from now on. Raises: TidegateError."""
    source_from_settings(settings)
    check_place(arguments.keep_in)
    if password is None:
        password = given_password(
            settings, from_stdin=arguments.password_stdin, asked=arguments.ask_password
        )
    tried = try_source(config, settings, tool, password)
    require_success(tried, anyway=arguments.anyway, undone=undone)
    return tried


def _saved(config: Config, name: str) -> Source | None:
    async def find(app: App) -> Source | None:
        return app.state.sources.find(name)

    return with_app(App.open(config), find)


def _update(arguments: argparse.Namespace) -> None:
    config = load_for_state(arguments)
    source = _saved(config, arguments.name)
    if source is None:
        if arguments.name in {each.name for each in load_for_query(arguments).sources}:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The source {arguments.name!r} is in the settings and not saved.",
                hint=f"Change it in {config_path(arguments)}.",
            )
        with_app(App.open(config), partial(_raise_unknown, name=arguments.name))
        return
    rules = _rules(arguments, source)
    new_password = arguments.password_stdin or arguments.ask_password
    moved: str | None = None
    if arguments.url is not None:
        rules["url"] = absolute_file_url(arguments.url)
    elif new_password:
        rules["url"] = without_password(source.url)
    elif arguments.keep_in not in (None, place_of_password(source.url)):
        moved = Passwords(state_directory(config.state)).read(source.url)
        if moved is not None:
            rules["url"] = without_password(source.url)
    if not rules:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No change was given.",
            hint="`tidegate source update --help` lists the settings.",
        )
    # The result is checked like a new source, with the settings that do not change.
    settings = settings_of(source, **rules)
    tried = Tried(settings)
    if "url" in rules or "options" in rules:
        prepare_source(config, settings, arguments)
        undone = "Nothing was changed."
        tried = _tried(config, settings, arguments, "source update", undone, moved)
    place = arguments.keep_in or place_of_password(source.url)
    with kept_password(config, tried, place) as settings:
        changed = changed_source(source, settings, rules)
        change = partial(
            _save_change, was=source, now=changed, names=list(rules), arguments=arguments
        )
        with_app(App.open(config), change)


async def _save_change(
    app: App, was: Source, now: Source, names: list[str], arguments: argparse.Namespace
) -> None:
    wider = widened(was, now)
    if wider:
        what = f"widen the source {now.name} ({', '.join(wider)})"
        require_consent(app, "update", what, arguments)
    print_problems(source_changes(app).change(was, now, names))
    _warn_of_callers(app, arguments)
    print_status(f"changed {now.name} ({now.engine}, {now.access})")
    await _warn_of_rules(app, now, arguments)
    if was.url != now.url:
        note_lacking(app)


def _edit(arguments: argparse.Namespace) -> None:
    """Ask for each setting, with its present value as the proposed answer, and change the source
    as `update` does."""
    config = load_for_state(arguments)
    source = _saved(config, arguments.name)
    if source is not None and not ask_changes(source, arguments):
        print_status("nothing was changed")
        return
    _update(arguments)


async def _rename(app: App, arguments: argparse.Namespace) -> None:
    """Rename a saved source once a person agrees: rules of the settings may know its name."""
    name, new = arguments.name, arguments.new_name
    source = app.state.sources.find(name)
    if source is None:
        raise _unknown(app, name)
    changes = source_changes(app)
    config, place = load_for_query(arguments), config_path(arguments) or "the settings"
    changes.check_new_name(name, new, config, place)
    require_consent(app, "rename", f"rename the source {name} to {new}", arguments)
    renamed = changes.rename(source, new)
    print_problems(renamed.problems)
    print_status(f"renamed {name} to {new}")
    if renamed.holders:
        print_status(f"changed the lists of the tokens {', '.join(renamed.holders)}")
    print_status(
        "approvals that were not used have expired; settings files and clients that name"
        f" {name} must be changed by hand"
    )


def _warn_of_callers(app: App, arguments: argparse.Namespace) -> None:
    """Print a note for callers in `--run-as` that do not exist; they may be created later."""
    known = {entry.name for entry in app.tokens.list() if entry.revoked_at is None}
    known |= {cli().name, stdio().name, ANONYMOUS.name, BRIDGE}
    pairs = [str(text).partition("=") for text in arguments.run_as]
    callers = {name for name, _, role in pairs if role}
    for name in sorted(callers - known):
        near = difflib.get_close_matches(name, known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        print_status(f"note: no active token is named {name}{meant}")


async def _warn_of_rules(app: App, source: Source, arguments: argparse.Namespace) -> None:
    """Print a note for each rule given now that closes the source. The table may come later, so the
    rule is saved; where the source cannot be asked now, `tidegate doctor` says the same later."""
    if not (arguments.mask or arguments.filter):
        return
    with suppress(TidegateError):
        caller = LocalCaller(app, f"source {arguments.action}")
        for problem in await unfit_rules(caller, source):
            print_status(
                f"note: {problem}. Until that is corrected nothing of the source is read by the"
                f" callers of the rule: `tidegate source update {source.name}` with --mask or"
                " --filter gives other rules."
            )


def save(app: App, name: str) -> None:
    """Save a source of the settings in the state, replacing one of the same name."""
    source = _given(app, name)
    if app.state.sources.find(name) != source:
        app.state.sources.remove(name)
        app.state.sources.add(source)


def _given(app: App, name: str) -> Source:
    source = next(each for each in app.connections.sources() if each.name == name)
    return msgspec.structs.replace(source, ephemeral=False)


async def _list(app: App, arguments: argparse.Namespace) -> None:
    found, has_settings = _entries(app, arguments)
    entries = chosen(found, arguments, "sources", itemgetter("name"))
    if arguments.json:
        show_json({"sources": entries})
        return
    if found and not entries:
        print_status("no source has such a name")
        return
    if not entries:
        print_status("there is no source; `tidegate source add NAME URL` saves one")
        return
    columns = ("name", "engine", "access", "url", *(("from",) if has_settings else ()))
    show_table(columns, [[entry[name] for name in columns] for entry in entries])


async def _show(app: App, arguments: argparse.Namespace) -> None:
    """Everything that is set for one source. Its URL holds references to secrets, and no secret."""
    entries, _ = _entries(app, arguments)
    found = [entry for entry in entries if entry["name"] == arguments.name]
    if not found:
        raise _unknown(app, arguments.name)
    (entry,) = msgspec.to_builtins(found)
    if arguments.json:
        show_json(entry)
        return
    for name, value in entry.items():
        if value not in (None, [], {}):
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            show(f"{name:<18} {text}")


def _entries(app: App, arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """The sources with their settings, and whether the settings file names some."""
    named = {source.name: source for source in load_for_query(arguments).sources}
    # One in the settings replaces a saved one of its name, as in a server.
    entries = [
        _described(source) | {"from": "state"}
        for source in app.state.sources.list()
        if source.name not in named
    ]
    for settings in named.values():
        engine, dialect = engine_of(settings.url)
        fields = msgspec.to_builtins(settings) | {"engine": engine, "dialect": dialect}
        entries.append({**fields, "from": "settings"})
    entries.sort(key=itemgetter("name"))
    return entries, bool(named)


def _described(source: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.structs.asdict(source)
    del fields["id"], fields["ephemeral"], fields["temporary"]
    return fields


async def _remove(app: App, arguments: argparse.Namespace) -> None:
    name: str = arguments.name
    source = app.state.sources.find(name)
    if source is None:
        raise _unknown(app, name)
    # Or the same source could come back without its masks and without a question. It goes all the
    # same where this cannot be kept: nothing may keep a right from being taken away.
    with suppress(TidegateError):
        app.granted_rights.note()
    print_problems(source_changes(app).remove(source))
    print_status(f"removed {name}; its data is as it was")


async def _raise_unknown(app: App, name: str) -> None:
    raise _unknown(app, name)


def _unknown(app: App, name: str) -> TidegateError:
    near = difflib.get_close_matches(name, [each.name for each in app.state.sources.list()], 1)
    hint = f"Did you mean {near[0]!r}?" if near else "`tidegate source list` shows them."
    return TidegateError(Code.SOURCE_UNKNOWN, f"There is no saved source {name!r}", hint=hint)


async def _test(app: App, arguments: argparse.Namespace) -> None:
    show_report(await report_of(app, arguments.name), as_json=arguments.json)
