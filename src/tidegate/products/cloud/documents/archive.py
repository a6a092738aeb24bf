"""Unpacks the archive of a provider: `<version>/provider.yaml`, its services and signatures.

Nothing is written unless the whole archive is as it should be, and a directory appears whole or not
at all.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.signatures import Verifier
from tidegate.system.private_files import make_private_directory

MOST_FILES: Final = 20_000
MOST_UNPACKED_BYTES: Final = 1_073_741_824
_MEMBER: Final = re.compile(
    r"(?:provider|(?:services|resources)/(?:[\w-]{1,100}/)?[\w.-]{1,200})\.ya?ml(?:\.sig)?"
)
_LITTER: Final = re.compile(
    r"(?:__MACOSX/)?(?:[\w-][\w.-]{0,199}/){0,3}(?:\.DS_Store|\._[\w.-]{1,200}|Thumbs\.db|desktop\.ini)"
)
"""Files that a desktop puts beside others: they are left out."""
_SIGNATURE: Final = ".sig"


def unpack_provider(
    archive: BinaryIO, provider: str, version: str, src: Path, verifier: Verifier | None
) -> Path:
    """Unpack a `.tgz` to `src/<provider>/<version>` and return that; what was there is replaced.

    With a `verifier` each document must have a signature that holds.

    Raises: TidegateError DOCUMENT_UNTRUSTED: no archive of this version, a name that leads out of
        it, a link, too much, a signature missing or wrong; OSError.
    """
    name = f"{provider} {version}"
    files = _read(archive, name, version)
    if "provider.yaml" not in files:
        raise _refused(name, "it has no provider.yaml")
    if verifier is not None:
        for path, content in files.items():
            if not path.endswith(_SIGNATURE):
                signature = files.get(f"{path}{_SIGNATURE}")
                if signature is None:
                    raise _refused(name, f"{path} has no signature")
                verifier.verify(content, signature, f"{name} {path}")
    target = src / provider / version
    make_private_directory(target.parent)
    directory = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=target.parent))
    try:
        for path, content in files.items():
            file = directory / path
            make_private_directory(file.parent)
            file.write_bytes(content)
        _replace(directory, target)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return target


def _read(archive: BinaryIO, name: str, version: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size = 0
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as tar:
            for member in tar:
                path = member.name.removeprefix("./")
                if member.isdir() and (f"{path.rstrip('/')}/").startswith(f"{version}/"):
                    continue
                if member.isfile() and _LITTER.fullmatch(path):
                    continue
                inner = path.removeprefix(f"{version}/")
                if not member.isfile() or inner == path or not _MEMBER.fullmatch(inner):
                    raise _refused(name, f"it holds `{path[:120]}`, which is no provider document")
                size += member.size
                if len(files) >= MOST_FILES or size > MOST_UNPACKED_BYTES:
                    raise _refused(name, f"it has more than {MOST_UNPACKED_BYTES:,} bytes")
                content = tar.extractfile(member)
                if inner in files or content is None:
                    raise _refused(name, f"it holds `{inner[:120]}` twice")
                files[inner] = content.read()
    except (tarfile.TarError, EOFError, ValueError, UnicodeError) as error:
        raise _refused(name, f"it cannot be read ({error})") from None
    except OSError as error:
        # A damaged gzip stream is an OSError without a number.
        if error.errno is not None:
            raise
        raise _refused(name, f"it cannot be read ({error})") from None
    return files


def _replace(directory: Path, target: Path) -> None:
    """A directory cannot take the place of another at once: the old one steps aside."""
    aside = directory.with_name(f"{directory.name}.old")
    if target.exists():
        target.rename(aside)
    try:
        directory.rename(target)
    except OSError:
        if aside.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _refused(name: str, problem: str) -> TidegateError:
    return TidegateError(
        Code.DOCUMENT_UNTRUSTED, f"The archive of {name} is not unpacked: {problem}."
    )
