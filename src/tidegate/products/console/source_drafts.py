"""What an admin typed of a source, read and checked before anything is opened or saved."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

import msgspec

from tidegate.config.loading import convert_table
from tidegate.config.model import Config
from tidegate.config.sources import RunAsSettings, SourceSettings, check_source_name
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.source_settings import DeclaredSettings
from tidegate.model.sources import Source
from tidegate.sources.settings import changed_source, settings_of
from tidegate.sources.typed_urls import (
    ListedFolders,
    check_typed_options,
    check_typed_url,
    with_kept_password,
)
from tidegate.store.api import SourceStore
from tidegate.store.passwords import Place

Text = Annotated[str, msgspec.Meta(max_length=4_096)]
_DECLARED = frozenset(DeclaredSettings.__struct_fields__)


class SourceDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was typed: of `settings` those that are to change, written as in the settings file. A
    `url` of None is left as it is. `version` is that of the source that was shown; empty for a new
    one. `with_password`: one is typed, which only the request that saves it has."""

    name: str
    url: Text | None = None
    settings: dict[str, Any] = {}
    version: str = ""
    with_password: bool = False
    keep_in: Place = "file"


class Draft(NamedTuple):
    """What comes of it. `was` is None for a new source, `names` are the settings that change.
    `in_file`: the source is one of the settings file, as it is there and as it would be."""

    was: Source | None
    now: Source
    settings: SourceSettings
    names: tuple[str, ...]
    in_file: tuple[SourceSettings, SourceSettings] | None = None


class SourceDrafts:
    """Reads drafts. `config` gives the settings that the server follows."""

    def __init__(self, sources: SourceStore, config: Callable[[], Config]) -> None:
        self._sources = sources
        self._config = config

    @property
    def folders(self) -> ListedFolders:
        """From where files may be opened."""
        return ListedFolders("console.source_folders", self._config().console.source_folders)

    def in_file(self, name: str) -> SourceSettings | None:
        """A source that the settings name, which replaces a saved one."""
        return next((each for each in self._config().sources if each.name == name), None)

    def saved(self, name: str, version: str) -> Source:
        """A saved source, as it was shown. Raises: TidegateError SOURCE_UNKNOWN, ARGUMENT_INVALID
        for one of the settings file, ACCESS_CHANGED."""
        if self.in_file(name) is not None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The source {name!r} is in the settings file.",
                hint="Change it there: the page shows the lines.",
            )
        found = self._sources.find(name)
        if found is None:
            raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no saved source {name[:80]!r}")
        if version_of(found) != version:
            raise TidegateError(
                Code.ACCESS_CHANGED,
                f"Someone has changed the source {name!r} meanwhile.",
                hint="Look at what it is now; what you typed is still there.",
            )
        return found

    def read(self, body: SourceDraft) -> Draft:
        """The source that a draft makes. Reads files.

        Raises: TidegateError POLICY_DENIED, SOURCE_URL, CONFIG_INVALID, SOURCE_UNREACHABLE,
        ARGUMENT_INVALID; as `saved`.
        """
        if not body.version:
            return self._new(body)
        named = self.in_file(body.name)
        if named is not None:
            return _in_file(named, body)
        was = self.saved(body.name, body.version)
        url = was.url if body.url is None else with_kept_password(body.url.strip(), was)
        given = _given(was.name, url, body.settings)
        present = settings_of(was, run_as=_written(was))
        changed = {name: value for name, value in given.items() if value != getattr(present, name)}
        if url != was.url:
            check_typed_url(url, self.folders, was)
            changed["url"] = url
        settings = settings_of(was, **changed)
        check_typed_options(url, settings.options, was)
        now = changed_source(was, settings, changed)
        return Draft(was, now, settings, tuple(sorted(changed)))

    def _new(self, body: SourceDraft) -> Draft:
        check_source_name(body.name)
        if self.in_file(body.name) is not None or self._sources.find(body.name) is not None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is already a source `{body.name}`.",
                hint="Use another name.",
            )
        url = (body.url or "").strip()
        check_typed_url(url, self.folders)
        given = _given(body.name, url, body.settings)
        settings = SourceSettings(body.name, url, **given)
        check_typed_options(url, settings.options)
        now = msgspec.structs.replace(source_from_settings(settings), ephemeral=False)
        return Draft(None, now, settings, tuple(sorted(given)))


def version_of(source: Source | SourceSettings) -> str:
    """A digest of all that is set for a source: another one means that it was changed."""
    return sha256(msgspec.json.encode(source)).hexdigest()[:16]


def _in_file(was: SourceSettings, body: SourceDraft) -> Draft:
    url = was.url if body.url is None else body.url.strip()
    given = _given(was.name, url, body.settings)
    changed = {name: value for name, value in given.items() if value != getattr(was, name)}
    if url != was.url:
        changed["url"] = url
    settings = msgspec.structs.replace(was, **changed)
    before, now = source_from_settings(was), source_from_settings(settings)
    return Draft(before, now, settings, tuple(sorted(changed)), (was, settings))


def _given(name: str, url: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that were typed, as they are declared. Raises: TidegateError CONFIG_INVALID,
    ARGUMENT_INVALID."""
    unknown = sorted(settings.keys() - _DECLARED)
    if unknown:
        raise TidegateError(Code.ARGUMENT_INVALID, f"There is no setting `{unknown[0][:80]}`")
    read = convert_table({**settings, "name": name, "url": url}, SourceSettings)
    return {name: getattr(read, name) for name in settings}


def _written(source: Source) -> RunAsSettings | None:
    run_as = source.run_as
    if run_as is None:
        return None
    return RunAsSettings(run_as.role, dict(run_as.roles), dict(run_as.variables))
