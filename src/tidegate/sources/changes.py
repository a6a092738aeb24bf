"""Adds, changes, renames and removes saved sources, for commands and for the console alike.

Who does it was asked for consent before, where `policy.widening` wants that. What gives a right is
on record before it is done; what only takes rights away is done in any case.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tidegate.config.model import Config
from tidegate.config.sources import check_source_name
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_id
from tidegate.identity.tokens import Records, Tokens
from tidegate.model.sources import Source
from tidegate.policy.widening import widened
from tidegate.sources.kept_passwords import forget_password
from tidegate.sources.settings import recorded
from tidegate.store.access import PairingStore
from tidegate.store.api import SourceStore
from tidegate.store.passwords import Passwords


class SourceState(Protocol):
    """The areas of the state that changes of sources read and write."""

    @property
    def sources(self) -> SourceStore: ...
    @property
    def pairings(self) -> PairingStore: ...


class Renamed(NamedTuple):
    """A source with its new name, the tokens whose lists were changed, and why entries stay in the
    keyring."""

    source: Source
    holders: tuple[str, ...]
    problems: list[str]


class SourceChanges:
    """Changes of the sources of one state. `directory` is that of the state."""

    def __init__(
        self, state: SourceState, tokens: Tokens, directory: Path, records: Records
    ) -> None:
        self._state = state
        self._tokens = tokens
        self._directory = directory
        self._records = records

    def add(self, source: Source) -> None:
        """Save a source. Raises: TidegateError ARGUMENT_INVALID if its name is taken,
        AUDIT_UNAVAILABLE."""
        self._records.before("source.added", recorded(source))
        self._state.sources.add(source)

    def change(self, was: Source, now: Source, settings: Sequence[str]) -> list[str]:
        """Give a source the settings that `now` has; `settings` names those that were given.
        Returns why entries stay in the keyring.

        Raises: TidegateError ACCESS_CHANGED if the source is no longer what it `was`,
        AUDIT_UNAVAILABLE for a change that grants more.
        """
        note = self._records.before if widened(was, now) else self._records.after
        note("source.changed", recorded(now) | {"settings": " ".join(sorted(settings))})
        if not self._state.sources.change(now, was):
            raise changed_meanwhile(was.name)
        if was.url == now.url:
            return []
        return forget_password(self._directory, was, self._state.sources)

    def rename(self, was: Source, new: str) -> Renamed:
        """Give a source another name, for which `check_new_name` holds.

        Raises: TidegateError ACCESS_CHANGED, ARGUMENT_INVALID, AUDIT_UNAVAILABLE; nothing is
        changed.
        """
        passwords = Passwords(self._directory)
        others = [each.url for each in self._state.sources.list() if each.name != was.name]
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
            self._records.before("source.renamed", {"source": was.name, "to": new})
            holders = self._state.sources.rename(was, now, time.time())
        except BaseException:
            passwords.remove(*kept.values())
            raise
        unused = kept.values() if holders is None else kept
        problems = passwords.remove(*unused, named=others)
        if holders is None:
            raise changed_meanwhile(was.name)
        return Renamed(now, holders, problems)

    def remove(self, source: Source) -> list[str]:
        """Remove a source; its data is as it was. Returns why entries stay in the keyring."""
        self._records.after("source.removed", {"source": source.name})
        self._state.sources.remove(source.name)
        return forget_password(self._directory, source, self._state.sources)

    def check_new_name(self, old: str, new: str, config: Config, place: str) -> None:
        """Refuse a new name that the settings, which are at `place`, give to a source or that they
        give rights to; one that another saved source has, or a token names; and to rename what a
        client is to get a token for.

        Raises: TidegateError ARGUMENT_INVALID, CONFIG_INVALID.
        """
        check_source_name(new)
        if self._state.sources.find(new) is not None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is already a source `{new}`.",
                hint="Use another name.",
            )
        for source in config.sources:
            if source.name in (old, new):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The source {source.name!r} is in the settings, too.",
                    hint=f"Rename or remove it in {place} first.",
                )
        for setting, name in _named_by_settings(config):
            if name in (old, new):
                # Under another name it would be shared, listed or embedded by other rules.
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"`{setting}` of the settings names the source {name!r}.",
                    hint=f"Take it out of {place}, rename the source, and then put the new name"
                    " there.",
                )
        for token in self._tokens.list():
            if token.revoked_at is None and new in _sources_in(token.sources, token.tables):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The token `{token.name}` names `{new}` and would see this source.",
                    hint="Use another name, or revoke the token first.",
                )
        now = time.time()
        for pairing in self._state.pairings.list():
            waits = pairing.state in ("pending", "approved") and now < pairing.expires_at
            rights = pairing.granted or pairing.wanted
            if waits and _sources_in(rights.sources, rights.tables) & {old, new}:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The request {pairing.id} of `{pairing.client}` for a token names this"
                    " source.",
                    hint="Answer it with `tidegate pair`, and rename the source when the client has"
                    " its token.",
                )


def changed_meanwhile(name: str) -> TidegateError:
    """The error where another person or process was first."""
    return TidegateError(
        Code.ACCESS_CHANGED,
        f"The source {name!r} was changed by another process at the same time.",
        hint="Look at `tidegate source list --json`, then run the command again.",
    )


def _replaced(text: str, references: Mapping[str, str]) -> str:
    for old, new in references.items():
        text = text.replace(old, new)
    return text


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
