"""Passwords of sources that a person typed. One file each, for its owner alone, in the state
directory, to which a source's URL refers as `${FILE:...}`, like to any other file. Or an entry of
the operating system's keyring, `${KEYRING:...}`; then the file is empty and says that it is ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import files_of, keyring_entries_of
from tidegate.system.private_files import close_to_others, make_private_directory, replace_file

Place = Literal["file", "keyring"]

_IN_KEYRING = ".keyring"


def place_of_password(text: str) -> Place:
    """Where the password is that a URL refers to; a file if it refers to none."""
    return "keyring" if keyring_entries_of(text) else "file"


class _Kept(NamedTuple):
    """A password that is kept. `source` is the source's name, or NAME.ACCOUNT of a hardened one."""

    path: Path

    @property
    def place(self) -> Place:
        return "keyring" if self.path.suffix == _IN_KEYRING else "file"

    @property
    def entry(self) -> str:
        return self.path.name.removesuffix(_IN_KEYRING)

    @property
    def source(self) -> str:
        return self.entry.rpartition(".")[0]

    @property
    def reference(self) -> str:
        return f"${{KEYRING:{self.entry}}}" if self.place == "keyring" else f"${{FILE:{self.path}}}"

    def read(self) -> str:
        if self.place == "file":
            return self.path.read_text()
        from tidegate.config.system_keyring import read_secret

        return read_secret(self.entry)

    def remove(self) -> None:
        if self.place == "keyring":
            from tidegate.config.system_keyring import remove_secret

            remove_secret(self.entry)
        with suppress(OSError):
            self.path.unlink()


class Passwords:
    """Those below a state directory."""

    def __init__(self, state: Path) -> None:
        self.directory = state.absolute() / "passwords"

    def save(self, source: str, password: str, place: Place = "file") -> str:
        """Keep a source's password; returns the reference to it. An older one stays until it is
        removed: a running server may still open connections with it.

        Raises: TidegateError STATE_FAILED; KEYRING_FAILED, ENGINE_MISSING.
        """
        name = f"{source}.{os.urandom(4).hex()}"
        kept = _Kept(self.directory / (f"{name}{_IN_KEYRING}" if place == "keyring" else name))
        try:
            make_private_directory(self.directory, parents=False)
            close_to_others(self.directory)
            replace_file(kept.path, b"" if place == "keyring" else password.encode())
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The password cannot be kept in `{kept.path}`: {error.strerror}.",
                details={"path": str(kept.path)},
            ) from None
        if place == "keyring":
            from tidegate.config.system_keyring import save_secret

            try:
                save_secret(kept.entry, password)
            except BaseException:
                kept.path.unlink(missing_ok=True)
                raise
        return kept.reference

    def find(self, source: str) -> tuple[str, str] | None:
        """The reference to a password that was saved for a source, and the password. Raises:
        TidegateError STATE_FAILED, KEYRING_FAILED, ENGINE_MISSING."""
        try:
            for kept in self._all():
                if kept.source == source:
                    return kept.reference, kept.read()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from None
        return None

    def read(self, url: str) -> str | None:
        """The password that the URL refers to, if it is kept here. Raises: as `find`."""
        given = _references_in([url])
        try:
            return next((kept.read() for kept in self._all() if kept.reference in given), None)
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from None

    def copy(self, old: str, new: str, *texts: str, named: Iterable[str] = ()) -> dict[str, str]:
        """Keep the passwords of the source `old` for `new` as well, each in the same place: those
        that its `texts`, a URL and options, refer to, and those that were made for its accounts and
        are in no one of the `named` URLs of others. Returns the new reference of each, by the old
        one.

        Raises: TidegateError as `find`, and then nothing is kept for `new`.
        """
        own = _references_in(texts)
        others = _references_in(named)
        made: dict[str, str] = {}
        try:
            for kept in self._all():
                source = kept.source
                of_account = source == old or source.startswith(f"{old}.")
                if kept.reference in own or (of_account and kept.reference not in others):
                    renamed = new + source.removeprefix(old) if of_account else new
                    made[kept.reference] = self.save(renamed, kept.read(), kept.place)
        except BaseException as error:
            self.remove(*made.values())
            if not isinstance(error, OSError | UnicodeDecodeError):
                raise
            raise self._unreadable(error) from None
        return made

    def remove(self, *urls: str, named: Iterable[str] = ()) -> list[str]:
        """Remove the passwords that these URLs refer to, as far as they are kept here and the URLs
        in `named` do not refer to them. Returns why entries stay in the keyring."""
        given = _references_in(urls) - _references_in(named)
        problems: list[str] = []
        with suppress(OSError):
            for kept in self._all():
                if kept.reference not in given:
                    continue
                try:
                    kept.remove()
                except TidegateError as error:
                    problems.append(f"`{kept.entry}` stays in the keyring: {error.message}")
        return problems

    def unused(self, names: Iterable[str], texts: Iterable[str]) -> list[tuple[Path, str]]:
        """The files of passwords of no source, each with its entry of the keyring, else empty. A
        command that was killed may leave one. `names` are those of all sources, `texts` their
        URLs and options.

        One of an account (NAME.ACCOUNT) belongs to the source: it may be used later.
        """
        given, known = _references_in(texts), list(names)
        return [
            (kept.path, kept.entry if kept.place == "keyring" else "")
            for kept in self._all()
            if kept.reference not in given
            and not any(kept.source.startswith(f"{name}.") for name in known)
        ]

    def _all(self) -> Iterator[_Kept]:
        if self.directory.is_dir():
            yield from map(_Kept, sorted(self.directory.iterdir()))

    def _unreadable(self, error: Exception) -> TidegateError:
        return TidegateError(
            Code.STATE_FAILED,
            f"The passwords in `{self.directory}` cannot be read: {error}.",
            details={"path": str(self.directory)},
        )


def _references_in(texts: Iterable[str]) -> set[str]:
    """The references to files and to entries of the keyring, as `_Kept.reference` writes them."""
    found = list(texts)
    files = {f"${{FILE:{name}}}" for text in found for name in files_of(text)}
    return files | {f"${{KEYRING:{name}}}" for text in found for name in keyring_entries_of(text)}
