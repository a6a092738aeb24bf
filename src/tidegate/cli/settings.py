"""The `Config` of a command: the loaded settings, changed by the command's options."""

from __future__ import annotations

import argparse
import os
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from tidegate.cli.backing_server import given_dsn, with_backing_server
from tidegate.cli.terminal import print_status
from tidegate.config.addresses import LOOPBACK, http_address
from tidegate.config.loading import is_inline, load
from tidegate.config.model import Config, TlsSettings
from tidegate.config.postgres_environment import database_of_environment
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory, state_path
from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.commands.server import with_cloud_server
from tidegate.products.pgedge.settings_import import settings_of_environment, translate
from tidegate.surfaces.registry import check_surfaces


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


_PULLED: Final = "cloud"
"""The engine of cloud providers, and the source of the documents that were pulled."""
_noted: set[str] = set()


def _note(text: str) -> None:
    """Print a note about the settings only once, because a server reads them repeatedly."""
    if text not in _noted:
        _noted.add(text)
        print_status(f"note: {text}")


def load_for_query(arguments: argparse.Namespace) -> Config:
    """The settings of a command that uses a source: the same sources, masks and filters as those
    of `serve`. Raises: TidegateError CONFIG_INVALID."""
    path = config_path(arguments)
    config = load(path, _note) if path else Config()
    return msgspec.structs.replace(config, state=arguments.state) if arguments.state else config


def load_for_statement(arguments: argparse.Namespace) -> Config:
    """The settings of a command that sends a statement to a source, with the source `cloud` of the
    documents that were pulled or imported, as the surface of that name has it. Raises:
    TidegateError CONFIG_INVALID."""
    config = load_for_query(arguments)
    pulled = _pulled_documents(config, config.sources)
    return msgspec.structs.replace(config, sources=config.sources + pulled)


def load_for_state(arguments: argparse.Namespace) -> Config:
    """The settings of a command that opens no source. They have no sources, so that the command
    works when a configured source is missing. Raises: TidegateError CONFIG_INVALID."""
    return msgspec.structs.replace(load_for_query(arguments), sources=(), masks=(), filters=())


def load_for_serve(arguments: argparse.Namespace) -> Config:
    """The settings of `serve`. Raises: TidegateError CONFIG_INVALID, SOURCE_URL,
    ARGUMENT_INVALID."""
    config = load_for_query(arguments)
    check_surfaces(config)
    if "cloud" in config.surface:
        config = with_cloud_server(config, arguments)
    changes = _flag_changes(arguments, config)
    names = cast("tuple[str, ...]", changes.get("surfaces", config.surfaces))
    given = tuple(
        SourceSettings(
            name=name,
            url=url,
            access="write" if _admits_changes(url, arguments, config) else "read",
        )
        for name, url in arguments.source
    )
    if not given and not config.sources and "postgres" in names:
        found = database_of_environment(os.environ)
        given = () if found is None else (found,)
    dsn = given_dsn(config, arguments)
    if dsn is None and "cloud" in names:
        pulled = _pulled_documents(config, given + config.sources)
        access = "write" if pulled and _admits_changes(pulled[0].url, arguments, config) else "read"
        given += tuple(msgspec.structs.replace(each, access=access) for each in pulled)
    # The only one that was named for this server is what calls are about that name none.
    if len(given) == 1 and "postgres" in names:
        own = {"source": given[0].name} | config.surface.get("postgres", {})
        surface = cast("dict[str, Any]", changes.get("surface", config.surface))
        changes["surface"] = surface | {"postgres": own}
    replaced = {source.name for source in given}
    kept = tuple(source for source in config.sources if source.name not in replaced)
    config = msgspec.structs.replace(config, sources=kept + given, **changes)
    if dsn is not None:
        access = "write" if arguments.allow_writes or config.allow_writes else "read"
        config = with_backing_server(config, dsn, access=access)
    check_open_writes(config)
    listens = config.http is not None or config.pg.listen is not None
    if (arguments.tls_cert or arguments.tls_key) and not listens:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--tls-cert and --tls-key are for --http and --pg, and this server has stdio only.",
            hint="Add --http HOST:PORT.",
        )
    return config


def check_open_writes(config: Config) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for writes by callers whom no one knows."""
    if not config.auth and config.allow_writes:
        raise _refuse_open_writes()


def _flag_changes(arguments: argparse.Namespace, config: Config) -> dict[str, object]:
    """The fields of the settings that the flags of `serve` replace, but for its sources. Raises:
    TidegateError CONFIG_INVALID, ARGUMENT_INVALID."""
    changes: dict[str, object] = {}
    if arguments.surface:
        changes["surfaces"] = tuple(dict.fromkeys(arguments.surface))
    if arguments.http:
        changes["http"] = arguments.http
    if arguments.pg:
        changes["pg"] = msgspec.structs.replace(config.pg, listen=arguments.pg)
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
    if arguments.allow_writes:
        changes["allow_writes"] = True
    if arguments.extended:
        workbench = config.surface.get("workbench", {}) | {"extended": True}
        cloud = config.surface.get("cloud", {}) | {"extended": True}
        changes["surface"] = config.surface | {"workbench": workbench, "cloud": cloud}
    if "postgres" in cast("tuple[str, ...]", changes.get("surfaces", config.surfaces)):
        changes = _of_pgedge_variables(arguments, config) | changes
    if arguments.no_auth:
        _check_no_auth(arguments)
        changes["auth"] = False
    return changes


def _pulled_documents(
    config: Config, named: tuple[SourceSettings, ...]
) -> tuple[SourceSettings, ...]:
    """The source of the documents that `cloud pull` and `cloud import` put into the state
    directory, where no other source of cloud providers is named or saved, and none has its name;
    none if there are no documents."""
    folder = state_path(config.state).absolute() / "cloud"
    if not (folder / "src").is_dir():
        return ()
    from tidegate.store.sqlite.state import SqliteState

    known = [(source.name, find(source.url).engine) for source in named]
    state = SqliteState(state_directory(config.state) / "state.db")
    try:
        known += [(source.name, source.engine) for source in state.sources.list()]
    finally:
        state.close()
    if any(_PULLED in each for each in known):
        return ()
    return (SourceSettings(name=_PULLED, url=f"cloud://{quote(str(folder))}"),)


def _admits_changes(url: str, arguments: argparse.Namespace, config: Config) -> bool:
    """Whether callers may change a source that is named on the command line: with --allow-writes,
    and one of cloud providers where StackQL's configuration alone decides."""
    entry = find(url)
    by_mode = entry.engine == "cloud" and config.allow_writes
    return (arguments.allow_writes or by_mode) and not entry.reads_only


def _of_pgedge_variables(arguments: argparse.Namespace, config: Config) -> dict[str, object]:
    """What variables of pgEdge's server set and the settings leave at their defaults."""
    environment = settings_of_environment(os.environ)
    if not environment:
        return {}
    made = msgspec.convert(translate(environment, os.environ, _note), Config)
    names = ["auth", "token_files", "tls", "lockout", "embeddings", "language"]
    if not arguments.stdio:
        names.append("http")
    default = Config()
    return {
        name: getattr(made, name)
        for name in names
        if getattr(config, name) == getattr(default, name) != getattr(made, name)
    }


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
    for option, address in (("--http", arguments.http), ("--pg", arguments.pg)):
        host = http_address(address)[0] if address else "localhost"
        if host not in LOOPBACK:
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
