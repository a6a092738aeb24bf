"""The `Config` of a command: the loaded settings, changed by the command's options."""

from __future__ import annotations

import argparse
import os
from hashlib import sha256
from typing import cast

import msgspec

from tidegate.cli.hooks import command_hooks
from tidegate.cli.terminal import print_status
from tidegate.config.addresses import http_address, is_this_machine
from tidegate.config.loading import is_inline, load
from tidegate.config.model import Config, TlsSettings
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.surfaces.registry import SURFACES, check_surfaces


def config_path(arguments: argparse.Namespace) -> str | None:
    """The settings in `--config`, else those in $TIDEGATE_CONFIG."""
    return arguments.config or os.environ.get("TIDEGATE_CONFIG") or None


def settings_digest(settings: str | None) -> str:
    """A digest of the path or the inline text of the settings; empty without settings."""
    if settings is None:
        return ""
    return sha256(
        (settings if is_inline(settings) else os.path.realpath(settings)).encode()
    ).hexdigest()


def chosen_state(arguments: argparse.Namespace) -> str | None:
    """The state directory in `--state`, else in $TIDEGATE_STATE."""
    return arguments.state or os.environ.get("TIDEGATE_STATE") or None


def chosen_state_url(arguments: argparse.Namespace) -> str | None:
    """The URL of the state's database in `--state`."""
    return getattr(arguments, "state_url", None)


_noted: set[str] = set()
_mute = False


def mute_notes() -> None:
    """Print no notes about the settings: the process that started this one does."""
    global _mute
    _mute = True


def print_note(text: str) -> None:
    """Print a note about the settings only once, because a server reads them repeatedly."""
    if text not in _noted and not _mute:
        _noted.add(text)
        print_status(f"note: {text}")


def load_for_query(arguments: argparse.Namespace) -> Config:
    """The settings of a command that uses a source: the same sources, masks and filters as those
    of `serve`. Raises: TidegateError CONFIG_INVALID."""
    path = config_path(arguments)
    config = load(path, print_note) if path else Config()
    if arguments.state:
        config = msgspec.structs.replace(config, state=arguments.state)
    if url := getattr(arguments, "state_url", None):
        config = msgspec.structs.replace(config, state_url=url)
    return config


def load_for_statement(arguments: argparse.Namespace) -> Config:
    """The settings of a command that sends a statement to a source, with the sources that products
    find. Raises: TidegateError CONFIG_INVALID."""
    config = load_for_query(arguments)
    sources = config.sources
    for hook in command_hooks():
        sources += hook.found_sources(config, sources)
    return msgspec.structs.replace(config, sources=sources)


def load_for_state(arguments: argparse.Namespace) -> Config:
    """The settings of a command that opens no source. They have no sources, so that the command
    works when a configured source is missing. Raises: TidegateError CONFIG_INVALID."""
    return msgspec.structs.replace(load_for_query(arguments), sources=(), masks=(), filters=())


def load_for_serve(arguments: argparse.Namespace) -> Config:
    """The settings of `serve`. Raises: TidegateError CONFIG_INVALID, SOURCE_URL,
    ARGUMENT_INVALID."""
    config = load_for_query(arguments)
    check_surfaces(config)
    hooks = command_hooks()
    for hook in hooks:
        config = hook.read_serve_settings(config, arguments)
    changes = _flag_changes(arguments, config)
    names = cast("tuple[str, ...]", changes.get("surfaces", config.surfaces))
    sections = dict(config.sections)
    for hook in hooks:
        found = dict(hook.replace_serve_settings(config, arguments, names))
        sections |= found.pop("sections", {})
        changes = found | changes
    config = msgspec.structs.replace(config, **changes, sections=sections)
    given = tuple(
        SourceSettings(
            name=name,
            url=url,
            access="write" if admits_changes(url, arguments, config) else "read",
        )
        for name, url in arguments.source
    )
    for hook in hooks:
        given += hook.serve_sources(config, arguments, given)
    replaced = {source.name for source in given}
    kept = tuple(source for source in config.sources if source.name not in replaced)
    config = msgspec.structs.replace(config, sources=kept + given)
    for hook in hooks:
        config = hook.complete_serve_settings(config, arguments, given)
    check_open_writes(config)
    _check_workers(config, arguments)
    if (arguments.tls_cert or arguments.tls_key) and not _listens(config):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--tls-cert and --tls-key are for --http and --pg, and this server has stdio only.",
            hint="Add --http HOST:PORT.",
        )
    return config


def _listens(config: Config) -> bool:
    return config.http is not None or any(each.listens for each in config.sections.values())


def _check_workers(config: Config, arguments: argparse.Namespace) -> None:
    """Raises: TidegateError CONFIG_INVALID for several workers where there is one client. Settings
    that a gate has may be those of a client's own server on stdio, too, where `workers` does not
    count."""
    if (arguments.workers or 1) > 1 and not _listens(config):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"{arguments.workers} workers need an address that they serve.",
            hint="Add --http HOST:PORT or --pg HOST:PORT, or leave --workers out.",
        )
    if config.workers > 1 and config.stdio and arguments.for_bridge is None:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"{config.workers} workers cannot share standard input and output.",
            hint="Leave `stdio` out, or serve by one process.",
        )


def check_open_writes(config: Config) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for writes by callers whom no one knows."""
    if not config.auth and config.allow_writes:
        raise _refuse_open_writes()


def _flag_changes(arguments: argparse.Namespace, config: Config) -> dict[str, object]:
    """The fields of the settings that the flags of `serve` replace, except its sources. Raises:
    TidegateError CONFIG_INVALID, ARGUMENT_INVALID."""
    changes: dict[str, object] = {}
    if arguments.surface:
        changes["surfaces"] = tuple(dict.fromkeys(arguments.surface))
    if arguments.http:
        changes["http"] = arguments.http
    if arguments.tls_cert or arguments.tls_key:
        changes["tls"] = _tls(arguments, config.tls)
    if arguments.token_file:
        changes["token_files"] = tuple(
            dict.fromkeys(config.token_files + tuple(arguments.token_file))
        )
    if arguments.console:
        if not arguments.http and config.http is None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--console is for --http, and this server has stdio only.",
                hint="Add --http 127.0.0.1:8765, or run `tidegate console`.",
            )
        changes["console"] = msgspec.structs.replace(config.console, enabled=True)
    if arguments.stdio:
        changes["stdio"] = True
    if arguments.workers is not None:
        changes["workers"] = arguments.workers
    if arguments.allow_writes:
        changes["allow_writes"] = True
    if arguments.extended:
        extended = [name for name, entry in SURFACES.items() if entry.extended]
        changes["surface"] = config.surface | {
            name: config.surface.get(name, {}) | {"extended": True} for name in extended
        }
    if arguments.no_auth:
        _check_no_auth(arguments)
        changes["auth"] = False
    return changes


def admits_changes(url: str, arguments: argparse.Namespace, config: Config) -> bool:
    """Whether callers may change a source that is named on the command line: with --allow-writes,
    and where the settings allow writes if the engine leaves it to them."""
    entry = find(url)
    by_settings = entry.writes_by_settings and config.allow_writes
    return (arguments.allow_writes or by_settings) and not entry.reads_only


def _tls(arguments: argparse.Namespace, configured: TlsSettings | None) -> TlsSettings:
    """The files of the options, each in the place of the one in the settings."""
    cert = arguments.tls_cert or (configured and configured.cert)
    key = arguments.tls_key or (configured and configured.key)
    if not cert or not key:
        missing = "--tls-key" if cert else "--tls-cert"
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"HTTPS needs a certificate and its key: {missing} is missing.",
            hint="Give both, also if one file holds both.",
        )
    return TlsSettings(cert, key)


def _check_no_auth(arguments: argparse.Namespace) -> None:
    if arguments.allow_writes:
        raise _refuse_open_writes()
    check_without_auth("--http", arguments.http)


def check_without_auth(option: str, address: str | None) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for an address that others than this machine reach."""
    host = http_address(address)[0] if address else "localhost"
    if not is_this_machine(host):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--no-auth works on loopback only: it would let everyone who can reach "
            f"{host} read the sources.",
            hint=f"Use {option} 127.0.0.1:PORT, or leave --no-auth out and create a token.",
        )


def _refuse_open_writes() -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "A server without authentication does not allow writes, because no caller could be held"
        " accountable for them.",
        hint="Leave out --no-auth (in the settings `auth = false`) and create a token, or leave out"
        " --allow-writes (`allow_writes`).",
    )
