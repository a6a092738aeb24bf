"""Sources in the console: added, tried, changed, renamed and removed, by admins of all sources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.sources import Source
from tidegate.policy.widening import only_narrows, widened
from tidegate.products.console.admins import Consent, check_admin
from tidegate.products.console.source_drafts import Draft, SourceDraft, SourceDrafts
from tidegate.products.console.source_rights import SourceRights
from tidegate.products.console.source_tries import SourceTries, Tried
from tidegate.secrets.url_logins import asks_for_password, without_password
from tidegate.sources.changes import SourceChanges
from tidegate.sources.commands import add_command, update_command
from tidegate.sources.kept_passwords import check_place, kept_password
from tidegate.sources.report import may_pass
from tidegate.sources.settings import changed_source
from tidegate.sources.settings_patch import settings_patch


class SourceEdit(SourceDraft, frozen=True, kw_only=True):
    """The body of what saves a draft. `anyway`: although it cannot be opened now."""

    password: str = ""
    passphrase: str = ""
    anyway: bool = False


class TrySource(SourceDraft, frozen=True, kw_only=True):
    """The body of `sources/try`. What is saved is tried without a passphrase."""

    password: str = ""
    passphrase: str = ""


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `rename`. `shows`: what would come of it, and nothing is done."""

    version: str
    to: str
    passphrase: str = ""
    shows: bool = False


class Remove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `remove`."""

    version: str


class SourceEdits:
    """What an admin of all sources may do of sources. `hashing` is the lock of what takes a
    passphrase, `config` gives the settings that the server follows."""

    def __init__(
        self,
        app: App,
        drafts: SourceDrafts,
        rights: SourceRights,
        tries: SourceTries,
        consent: Consent,
        config: Callable[[], Config],
        hashing: asyncio.Lock,
    ) -> None:
        self._app = app
        self._drafts = drafts
        self._rights = rights
        self._tries = tries
        self._consent = consent
        self._config = config
        self._hashing = hashing

    # What would come of it

    async def preview(self, body: SourceDraft, signed_in: SignedIn) -> dict[str, Any]:
        """What a draft would change: the settings, the rights of every caller, and the command that
        does the same; of a source of the settings file the lines to change there. Opens nothing.

        Raises: TidegateError POLICY_DENIED; as `SourceDrafts.read`.
        """
        check_admin(signed_in)
        draft = await asyncio.to_thread(self._drafts.read, body)
        before, after = self._served(draft.was), self._served(draft.now)
        matrix = await asyncio.to_thread(self._rights.compare, before, after, signed_in)
        wider = () if draft.was is None else widened(draft.was, draft.now)
        in_file = draft.in_file
        return {
            "names": list(draft.names),
            "widens": list(wider),
            "passphrase": in_file is None and _needs_passphrase(draft, body.with_password),
            "asks_password": asks_for_password(draft.now.url),
            "matrix": matrix,
            "command": "" if in_file is not None else _command(draft, body),
            "patch": "" if in_file is None else settings_patch(*in_file, draft.names),
        }

    async def try_source(
        self, body: TrySource, signed_in: SignedIn, address: str
    ) -> dict[str, Any]:
        """Open what was typed, or what is saved where nothing was; say what is found there.

        Raises: TidegateError OPERATOR_CONSENT, LIMIT_RATE; as `preview`.
        """
        check_admin(signed_in)
        draft = await asyncio.to_thread(self._drafts.read, body)
        if draft.in_file is not None and {"url", "options"} & set(draft.names):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "A source of the settings file is tried as it is there.",
                hint="Leave its URL and its options as they are.",
            )
        if not _is_as_saved(draft, body.password):
            signed_in = await self._require(signed_in, body.passphrase, address)
        tried = await self._tries.open(
            draft.settings, body.password or None, draft.now, signed_in, address
        )
        return tried.fields()

    # What is done

    async def add(self, body: SourceEdit, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Save a source, once it was reached. Raises: TidegateError OPERATOR_CONSENT,
        SOURCE_UNREACHABLE, AUDIT_UNAVAILABLE; as `preview`."""
        check_admin(signed_in)
        if body.version:
            raise TidegateError(Code.ARGUMENT_INVALID, "A new source has no version")
        draft = await asyncio.to_thread(self._drafts.read, body)
        signed_in = await self._require(signed_in, body.passphrase, address)
        tried = await self._tried(draft, body, signed_in, address)
        changes = self._changes(signed_in, address)

        def save() -> Source:
            with self._kept(draft, body) as settings:
                source = msgspec.structs.replace(self._app.declare(settings), ephemeral=False)
                changes.add(source)
                return source

        saved = await asyncio.to_thread(save)
        self._follow()
        return {"name": saved.name, "notes": tried.report["unfit"] if tried.report else []}

    async def change(self, body: SourceEdit, signed_in: SignedIn, address: str) -> dict[str, Any]:
        """Give a saved source other settings.

        Raises: TidegateError ACCESS_CHANGED if it is no longer the one that was shown; as `add`.
        """
        check_admin(signed_in)
        if not body.version or self._drafts.in_file(body.name) is not None:
            # Says that it is in the settings file, or that the version is missing.
            await asyncio.to_thread(self._drafts.saved, body.name, body.version)
        draft = await asyncio.to_thread(self._drafts.read, body)
        was = draft.was
        assert was is not None  # noqa: S101 - a draft with a version
        if not draft.names and not body.password:
            return {"name": was.name, "notes": []}
        if _needs_passphrase(draft, bool(body.password)):
            signed_in = await self._require(signed_in, body.passphrase, address)
        if body.password or {"url", "options"} & set(draft.names):
            await self._tried(draft, body, signed_in, address)
        changes = self._changes(signed_in, address)
        names = sorted({*draft.names, "url"} if body.password else draft.names)

        def save() -> tuple[Source, list[str]]:
            with self._kept(draft, body) as settings:
                now = changed_source(was, settings, dict.fromkeys(draft.names))
                return now, changes.change(was, now, names)

        saved, notes = await asyncio.to_thread(save)
        self._follow()
        if {"masks", "filters"} & set(draft.names):
            notes += await self._tries.unfit(saved, signed_in, address)
        return {"name": saved.name, "notes": notes}

    async def rename(
        self, name: str, body: Rename, signed_in: SignedIn, address: str
    ) -> dict[str, Any]:
        """Give a saved source another name, or show what would come of it. Raises: as `change`."""
        check_admin(signed_in)
        was = await asyncio.to_thread(self._drafts.saved, name, body.version)
        changes = self._changes(signed_in, address)
        place = "the settings file"
        await asyncio.to_thread(changes.check_new_name, name, body.to, self._config(), place)
        if body.shows:
            now = msgspec.structs.replace(was, name=body.to)
            before, after = self._served(was), self._served(now)
            return {
                "matrix": await asyncio.to_thread(self._rights.compare, before, after, signed_in),
                "command": f"tidegate source rename {name} {body.to}",
            }
        signed_in = await self._require(signed_in, body.passphrase, address)
        renamed = await asyncio.to_thread(changes.rename, was, body.to)
        self._follow()
        return {"name": body.to, "notes": renamed.problems, "holders": list(renamed.holders)}

    async def remove(
        self, name: str, body: Remove, signed_in: SignedIn, address: str
    ) -> dict[str, Any]:
        """Remove a saved source; its data is as it was. Works without a record. Raises:
        TidegateError ACCESS_CHANGED, SOURCE_UNKNOWN."""
        check_admin(signed_in)
        was = await asyncio.to_thread(self._drafts.saved, name, body.version)
        changes = self._changes(signed_in, address)
        notes = await asyncio.to_thread(changes.remove, was)
        self._follow()
        return {"name": name, "notes": notes}

    async def _require(self, signed_in: SignedIn, passphrase: str, address: str) -> SignedIn:
        """The session once the passphrase was typed: one at a time, since a hash takes 32 MB."""
        async with self._hashing:
            return await asyncio.to_thread(self._consent.require, signed_in, passphrase, address)

    async def _tried(
        self, draft: Draft, body: SourceEdit, signed_in: SignedIn, address: str
    ) -> Tried:
        """The source as it was reached, or as the admin wants it anyway. Raises: TidegateError."""
        await asyncio.to_thread(check_place, body.keep_in if body.password else None)
        password = body.password or None
        tried = await self._tries.open(draft.settings, password, draft.now, signed_in, address)
        failure = tried.failure
        if failure is not None and not (body.anyway and may_pass(failure)):
            raise failure
        return tried

    def _kept(self, draft: Draft, body: SourceEdit) -> AbstractContextManager[SourceSettings]:
        """The settings with a reference to the password that was typed."""
        settings, password = draft.settings, body.password or None
        if password is not None:
            bare = without_password(settings.url)
            if not asks_for_password(bare):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    "The URL does not name a user whose password this could be.",
                    hint="Write it like postgresql://user@host/database.",
                )
            settings = msgspec.structs.replace(settings, url=bare)
        return kept_password(self._app.directory, settings, password, body.keep_in)

    def _changes(self, signed_in: SignedIn, address: str) -> SourceChanges:
        app, records = self._app, self._consent.records(signed_in, address)
        return SourceChanges(app.state, app.tokens, app.directory, records)

    def _served(self, source: Source | None) -> Source | None:
        return None if source is None else self._app.connections.with_global_rules(source)

    def _follow(self) -> None:
        """Have this server close what changed at once; others see it within a second."""
        with suppress(TidegateError):  # settings that cannot be read refuse every call
            self._app.gateway.follow_sources()


def _needs_passphrase(draft: Draft, with_password: bool) -> bool:
    """Whether a draft does more than to take rights away."""
    if draft.was is None or with_password:
        return True
    return bool(draft.names) and not only_narrows(draft.was, draft.now)


def _is_as_saved(draft: Draft, password: str) -> bool:
    """Whether a try opens what the gate opens anyway."""
    moved: Sequence[str] = [name for name in draft.names if name in ("url", "options")]
    return draft.was is not None and not moved and not password


def _command(draft: Draft, body: SourceDraft) -> str:
    asks, place = body.with_password, body.keep_in
    if draft.was is None:
        return add_command(draft.now, asks_password=asks, place=place)
    names = draft.names
    return update_command(draft.was, draft.now, names, asks_password=asks, place=place)
