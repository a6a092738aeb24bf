"""A new source from the URL that a person gives: read, named, and saved once it was reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.cli.source_check import Tried, absolute_file_url, kept_password
from tidegate.cli.terminal import print_status
from tidegate.config.model import Config
from tidegate.engines.common.url import FOLDER_SCHEME
from tidegate.engines.registry import ENGINES
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.secrets.url_logins import split_authority, without_password
from tidegate.store.passwords import Place


def url_as_given(url: str) -> str:
    return absolute_file_url(url_of(url))


def source_of(url: str, saved: Iterable[Source]) -> Source | None:
    """The saved source of a database, whatever its password."""
    wanted = without_password(url)
    return next((each for each in saved if without_password(each.url) == wanted), None)


def url_of(text: str) -> str:
    """The URL of a file or folder that is named by its path, or the text as it is, without the
    quotes and the `psql` that were copied with it.

    Raises: TidegateError SOURCE_UNREACHABLE for a path at which nothing is.
    """
    text = text.strip().removeprefix("psql ").strip().strip("'\"")
    path = expand(text)
    if text and "://" not in text and path.is_dir():
        return f"{FOLDER_SCHEME}://{path.absolute()}"
    prefixes = tuple([prefix for prefix in ENGINES if prefix[-1] == ":"])
    if not text or "://" in text or text.lower().startswith(prefixes):
        return text
    if not path.is_file():
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"There is no file or folder at {path.absolute()}.",
            hint="Correct the path, or give a URL such as postgresql://user@host/database.",
        )
    with path.open("rb") as file:
        beginning = file.read(32)
    files = {scheme: entry.files for scheme, entry in ENGINES.items()}
    known = (scheme for scheme, each in files.items() if each and each.has(beginning))
    return f"{next(known, 'sqlite')}:///{path.absolute()}"


def check_whole(url: str) -> None:
    """Refuse a URL, without its password, that has an `@` after the host: a part of the password
    would count as the host, which is shown and looked up. Raises: TidegateError SOURCE_URL."""
    parts = split_authority(url)
    path, _, options = ("" if parts is None else parts.rest).partition("?")
    if "@" in path or "@" in options.partition("=")[0]:
        raise TidegateError(
            Code.SOURCE_URL,
            "It cannot be seen where the password in the URL ends.",
            hint="Leave the password out of the URL; it is asked for.",
        )


def free_name(url: str, taken: Collection[str]) -> str:
    """A name for the source, after its database."""
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2]
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(last).stem).strip("-_")[:40] or "database"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name


def save_source(
    config: Config,
    tried: Tried,
    place: Place,
    add: partial[Source],
    write: partial[None] | None = None,
) -> None:
    """Save the password and the source, and write the entry; all of it or nothing."""
    with kept_password(config, tried, place) as settings:
        given = msgspec.structs.replace(config, sources=(settings,))

        async def save(app: App) -> Source:
            return add(app, settings.name)

        source = with_app(App.open(given), save)
        if write is None:
            return
        try:
            write()
        except BaseException:
            with_app(App.open(config), partial(_remove, source=source))
            raise


async def _remove(app: App, source: Source) -> None:
    app.note_less("source.removed", {"source": source.name})
    app.state.sources.remove(source.name)
    print_status("the source was removed again")
