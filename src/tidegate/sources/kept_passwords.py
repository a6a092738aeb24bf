"""The password of a source that a person typed: kept if the source is saved, and forgotten when no
source names it any more."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.url_logins import with_password
from tidegate.store.api import SourceStore
from tidegate.store.passwords import Passwords, Place


@contextmanager
def kept_password(
    directory: Path, settings: SourceSettings, password: str | None, place: Place
) -> Generator[SourceSettings]:
    """The settings with a reference to the password, which is kept if the block succeeds.
    `directory` is that of the state. Raises: TidegateError STATE_FAILED, KEYRING_FAILED,
    ENGINE_MISSING."""
    if password is None:
        yield settings
        return
    passwords = Passwords(directory)
    reference = passwords.save(settings.name, password, place)
    try:
        url = with_password(settings.url, reference)
        yield msgspec.structs.replace(settings, url=url)
    except BaseException:
        passwords.remove(reference)
        raise


def forget_password(directory: Path, was: Source, sources: SourceStore) -> list[str]:
    """Remove the kept password of a source that no longer names it, unless another one does.
    Returns why entries stay in the keyring."""
    named = [each.url for each in sources.list()]
    return Passwords(directory).remove(was.url, named=named)


def check_place(place: Place | None) -> None:
    """See that the keyring can be used, if a password shall be kept there, before one is asked for.

    Raises: TidegateError KEYRING_FAILED, ENGINE_MISSING.
    """
    if place == "keyring":
        from tidegate.config.system_keyring import keyring_title

        try:
            keyring_title()
        except TidegateError as error:
            if error.code is not Code.KEYRING_FAILED:
                raise
            hint = "Unlock or start one, or use --keep-in file: only your account can read it."
            raise TidegateError(
                error.code, error.message, hint=hint, details=error.details
            ) from None
