"""`tidegate config check | show`: the settings as a server would read them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidegate.cli.connection_totals import connection_totals
from tidegate.cli.settings import check_open_writes, config_path, load_for_query
from tidegate.cli.terminal import print_status, show_json
from tidegate.config.file_permissions import require_private_file
from tidegate.config.loading import is_inline, section_kinds
from tidegate.config.model import Config
from tidegate.config.state import check_directory, state_key, state_path, state_url
from tidegate.engines.registry import check_plan_limits, check_share, check_url
from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.worker_share import WorkerShare
from tidegate.policy.data_rules import with_global_rules
from tidegate.store.opening import check_state
from tidegate.surfaces.registry import check_surfaces


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`. Raises: TidegateError CONFIG_INVALID and what else is wrong."""
    path = config_path(arguments)
    if arguments.action == "check" and path is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No settings file is named.",
            hint="Name it with --config or in TIDEGATE_CONFIG.",
        )
    config = load_for_query(arguments)
    check_surfaces(config)
    if arguments.action == "show":
        show_json(_shown(config, everything=arguments.all))
        return 0
    faults, concerns = list(_faults(config)), list[str]()
    try:
        concerns = _concerns_of_state(config)
    except TidegateError as error:
        faults.append(_line(error))
    for fault in faults:
        print_status(fault)
    if faults:
        return ERRORS[Code.CONFIG_INVALID].exit_status
    for concern in (*_without_effect(config), *concerns):
        print_status(f"note: {concern}")
    for line in connection_totals(config):
        print_status(line)
    count = len(config.sources)
    sources = "1 source" if count == 1 else f"{count} sources"
    print_status(f"{_named(str(path))}: the settings are valid, with {sources}")
    return 0


def _faults(config: Config) -> Iterator[str]:
    """What would keep each source, or the server, from starting, one line each. No source is
    opened."""
    for settings in config.sources:
        try:
            source = source_from_settings(settings)
            check_plan_limits(with_global_rules(source, masks=config.masks, filters=config.filters))
            check_url(source)
            check_share(source, WorkerShare(1, config.workers))
        except TidegateError as error:
            yield f"source {settings.name}: {_line(error)}"
    sections = [each.check_files for each in config.sections.values()]
    for check in (check_open_writes, _check_certificate, _check_token_files, *sections):
        try:
            check(config)
        except TidegateError as error:
            yield _line(error)


def _line(error: TidegateError) -> str:
    return f"{error.message} {error.hint}".rstrip()


def _concerns_of_state(config: Config) -> list[str]:
    """What may lose changes of a state in PostgreSQL, or that a state cannot be read now; nothing
    is made or changed. Raises: TidegateError SOURCE_URL, ARGUMENT_INVALID for the URL of a state
    that is none, or a key that cannot be used; CONFIG_INVALID, STATE_FAILED as `App.open`."""
    database = state_url(config.state_url)
    key = state_key(config.state_key, database)
    directory = state_path(config.state)
    check_directory(directory)
    if config.agent_accounts and directory.exists():
        require_private_file(directory, config.agent_accounts)
    try:
        check_state(database, directory, key)
        if database is None:
            return []
        from tidegate.store.postgres.health import read_health  # needs an extra

        return list(read_health(database).concerns)
    except TidegateError as error:
        if error.retry_after_s is None:
            raise
        return [error.message]


def _without_effect(config: Config) -> Iterator[str]:
    """Settings of sources that change nothing."""
    for each in config.sources:
        if (
            each.costly_plans != "deny"
            and each.max_plan_cost is None
            and each.max_plan_rows is None
        ):
            yield (
                f"source {each.name}: `costly_plans` has no effect without `max_plan_cost` or"
                " `max_plan_rows`"
            )


def _check_certificate(config: Config) -> None:
    """Read the files that TLS takes. Raises: TidegateError CONFIG_INVALID."""
    if config.tls is not None:
        from tidegate.edges.http.certificate import ServerCertificate

        ServerCertificate(config.tls)


def _check_token_files(config: Config) -> None:
    """Read the files with tokens. Raises: TidegateError CONFIG_INVALID."""
    if config.token_files:
        from tidegate.identity.token_files import TokenFiles

        paths = [Path(each) for each in config.token_files]
        TokenFiles(paths, check=lambda name, tables: None, accounts=config.agent_accounts).load()


def _shown(config: Config, *, everything: bool) -> dict[str, Any]:
    """The settings as one object; without those that are as by default, unless all are wanted.
    They hold no secret, only references to them."""
    fields = _fields_of(config)
    if everything:
        return fields
    default = _fields_of(Config())
    return {name: value for name, value in fields.items() if value != default[name]}


def _fields_of(config: Config) -> dict[str, Any]:
    """All settings by name, those of products after the kernel's."""
    fields: dict[str, Any] = msgspec.to_builtins(config)
    del fields["sections"]
    kinds = {**section_kinds(), **{name: type(each) for name, each in config.sections.items()}}
    for name, kind in kinds.items():
        fields[name] = msgspec.to_builtins(config.section(kind))
    return fields


def _named(path: str) -> str:
    return "the inline settings" if is_inline(path) else path
