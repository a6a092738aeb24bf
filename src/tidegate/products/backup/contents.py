"""What is in a backup: the state and the keys of one moment, as an archive with a description."""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from tidegate import __version__
from tidegate.audit.checkpoints import LatestCheckpoint
from tidegate.audit.control_records import Checkpoint
from tidegate.audit.segment import segments, tail_of
from tidegate.audit.shipped import find_gate_id
from tidegate.errors import Code, TidegateError
from tidegate.products.backup.encryption import DecryptingReader, EncryptingWriter, refuse
from tidegate.store.sqlite.copies import copy_state
from tidegate.system.private_files import make_private_directory, write_new_file
from tidegate.typed_values import decode_json

STATE = "state.db"
DESCRIPTION = "backup.json"
_FILES = ("mask.key", "undo.key", "staged.key", "operator.json", "audit-key/signing.key")
_NAMES = re.compile(
    r"state\.db|backup\.json|mask\.key|undo\.key|staged\.key|operator\.json"
    r"|audit-key/(?:signing\.key|[0-9a-f]{16}\.pub)|passwords/[\w.@+-]{1,200}"
)
_MOST_DESCRIPTION = 16_777_216


class Description(msgspec.Struct, frozen=True):
    """`made_at` is before all that is in the backup was read, in Unix seconds. `positions` are the
    numbers of the last lines of the record's segments then, `open` the segments that may get
    more lines, `head` the newest checkpoint."""

    version: str
    made_at: float
    directory: str
    gate: str
    positions: dict[str, int]
    open: tuple[str, ...]
    head: Checkpoint | None


def write_backup(
    directory: Path, file: BinaryIO, passphrase: str, url: str | None = None
) -> Description:
    """Write a backup of the state directory, and of the state in the database of a URL if it is
    there. Raises: OSError, TidegateError."""
    writer = EncryptingWriter(file, passphrase)
    if url is None and not (directory / STATE).is_file():
        raise TidegateError(
            Code.STATE_FAILED,
            f"There is no state in `{directory}`.",
            hint="Name the directory with --state.",
        )
    described = _describe(directory)
    with (
        tempfile.TemporaryDirectory(prefix=".backup-", dir=directory) as made,
        tarfile.open(fileobj=cast("Any", writer), mode="w|") as archive,
    ):
        _add(archive, DESCRIPTION, msgspec.json.encode(described))
        copy = Path(made) / STATE
        if url is None:
            copy_state(directory / STATE, copy)
        else:
            from tidegate.store.moving import copy_to_sqlite  # needs an extra

            copy_to_sqlite(url, copy)
        archive.add(copy, STATE, recursive=False, filter=_without_owner)
        for path in _key_files(directory):
            name = path.relative_to(directory).as_posix()
            if _NAMES.fullmatch(name):
                _add(archive, name, path.read_bytes())
    writer.close()
    return described


def read_backup(file: BinaryIO, passphrase: str, directory: Path) -> Description:
    """Write the files of a backup into a directory, which is made. Raises: OSError, TidegateError;
    then the directory holds a part of them."""
    described: Description | None = None
    found: set[str] = set()
    reader = DecryptingReader(file, passphrase)
    make_private_directory(directory, is_new=True)
    try:
        with tarfile.open(fileobj=cast("Any", reader), mode="r|") as archive:
            for member in archive:
                if not (member.isfile() and _NAMES.fullmatch(member.name)) or member.name in found:
                    raise refuse("it holds a file that is none of a backup")
                found.add(member.name)
                content = archive.extractfile(member)
                if content is None:
                    raise refuse("it holds a file that is none of a backup")
                if member.name == DESCRIPTION:
                    text = content.read(_MOST_DESCRIPTION)
                    described = decode_json(text, Description)
                else:
                    _keep(directory / member.name, content, member.name)
        reader.read()  # to its end, which shows that nothing was cut off
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise refuse(f"its content was changed ({type(error).__name__})") from None
    if described is None or STATE not in found:
        raise refuse("it is not whole")
    return described


def _keep(path: Path, content: Any, name: str) -> None:
    if path.parent.name in ("audit-key", "passwords"):
        make_private_directory(path.parent)
    if name != STATE:
        write_new_file(path, content.read())
        return
    write_new_file(path, b"")
    with path.open("wb") as file:
        while part := content.read(1_048_576):
            file.write(part)


def _describe(directory: Path) -> Description:
    made_at = time.time()
    positions: dict[str, int] = {}
    unended: list[str] = []
    gate = ""
    with suppress(FileNotFoundError):
        gate = find_gate_id(directory / "audit")
        for path in segments(directory / "audit"):
            tail = tail_of(path)
            positions[path.name] = 0 if tail is None else tail.seq
            if tail is None or not tail.next:
                unended.append(path.name)
    head = LatestCheckpoint(directory / "audit-key").read()
    place = str(directory.absolute())
    return Description(__version__, made_at, place, gate, positions, tuple(unended), head)


def _key_files(directory: Path) -> Iterator[Path]:
    for name in _FILES:
        if (directory / name).is_file():
            yield directory / name
    yield from sorted((directory / "audit-key").glob("*.pub"))
    if (directory / "passwords").is_dir():
        yield from sorted(each for each in (directory / "passwords").iterdir() if each.is_file())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o600
    archive.addfile(about, io.BytesIO(content))


def _without_owner(about: tarfile.TarInfo) -> tarfile.TarInfo:
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    return about
