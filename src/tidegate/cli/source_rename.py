"""`tidegate source rename`: another name for a saved source, and for it in what names it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator, Mapping

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.settings import config_path, load_for_query
from tidegate.cli.terminal import print_status
from tidegate.config.model import Config
from tidegate.config.sources import check_source_name
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_id
from tidegate.model.sources import Source
from tidegate.store.passwords import Passwords


def rename_source(app: App, was: Source, arguments: argparse.Namespace) -> None:
    """Rename a saved source once a person agrees: rules of the settings may know its name.

    Raises: TidegateError ARGUMENT_INVALID, CONFIG_INVALID, OPERATOR_CONSENT; nothing is changed.
    """
    new: str = arguments.new_name
    check_source_name(new)
    _refuse_named_elsewhere(app, was.name, new, arguments)
    require_consent(app, "rename", f"rename the source {was.name} to {new}", arguments)
    passwords = Passwords(app.directory)
    others = [each.url for each in app.state.sources.list() if each.name != was.name]
    kept = passwords.copy(was.name, new, was.url, *dict(was.options).values(), named=others)
    url = _replaced(was.url, kept)
    now = msgspec.structs.replace(
        was,
        name=new,
        id=source_id(new, url),
        url=url,
        options=tuple((name, _replaced(value, kept)) for name, value in was.options),
    )
    try:
        app.note("source.renamed", {"source": was.name, "to": new})
        holders = app.state.sources.rename(was, now, time.time())
    except BaseException:
        passwords.remove(*kept.values())
        raise
    for problem in passwords.remove(*(kept.values() if holders is None else kept), named=others):
        print_status(f"note: {problem}")
    if holders is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The source {was.name!r} was changed by another process at the same time.",
            hint="Look at `tidegate source list --json`, then run the command again.",
        )
    print_status(f"renamed {was.name} to {new}")
    if holders:
        print_status(f"changed the lists of the tokens {', '.join(holders)}")
    print_status(
        "approvals that were not used have expired; settings files and clients that name"
        f" {was.name} must be changed by hand"
    )


def _replaced(text: str, references: Mapping[str, str]) -> str:
    for old, new in references.items():
        text = text.replace(old, new)
    return text


def _refuse_named_elsewhere(app: App, old: str, new: str, arguments: argparse.Namespace) -> None:
    """Raises: TidegateError ARGUMENT_INVALID if the settings have a source of either name, which
    replaces a saved one, another saved source has the new one, a token names the new one, or a
    client is to get a token that names one of them."""
    if app.state.sources.find(new) is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"There is already a source `{new}`.", hint="Use another name."
        )
    config = load_for_query(arguments)
    for source in config.sources:
        if source.name in (old, new):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The source {source.name!r} is in the settings, too.",
                hint=f"Rename or remove it in {config_path(arguments)} first.",
            )
    for setting, name in _named_by_settings(config):
        if name in (old, new):
            # Under another name it would be shared, listed or embedded by other rules.
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{setting}` of the settings names the source {name!r}.",
                hint=f"Take it out of {config_path(arguments)}, rename the source, and then put"
                " the new name there.",
            )
    for token in app.tokens.list():
        if token.revoked_at is None and new in _sources_in(token.sources, token.tables):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The token `{token.name}` names `{new}` and would see this source.",
                hint="Use another name, or revoke the token first.",
            )
    now = time.time()
    for pairing in app.state.pairings.list():
        waits = pairing.state in ("pending", "approved") and now < pairing.expires_at
        rights = pairing.granted or pairing.wanted
        if waits and _sources_in(rights.sources, rights.tables) & {old, new}:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The request {pairing.id} of `{pairing.client}` for a token names this source.",
                hint="Answer it with `tidegate pair`, and rename the source when the client has"
                " its token.",
            )


def _named_by_settings(config: Config) -> Iterator[tuple[str, str]]:
    """Every setting that is about a source by its name, with that name."""
    for name in _sources_in(config.bridge.sources, config.bridge.tables):
        yield "bridge", name
    for section in config.sections.values():
        yield from section.source_names()
    for column in config.embeddings.columns:
        yield "embeddings.columns", column.source
    for surface, settings in config.surface.items():
        if isinstance(settings.get("source"), str):
            yield f"surface.{surface}.source", settings["source"]


def _sources_in(sources: Collection[str] | None, tables: Collection[str] | None) -> set[str]:
    """The sources that a token's lists name."""
    return {*(sources or ()), *(name.partition(":")[0] for name in tables or () if ":" in name)}
