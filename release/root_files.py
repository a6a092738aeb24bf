"""The files of the image, as mmdebstrap has packed them, in a form that depends on nothing else:
sorted, with one time, owned by root, and without what only a package manager reads.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

LEFT_OUT = ("etc/apt", "var/lib/apt", "var/cache", "var/log", "dev", "boot", "home", "media",
            "mnt", "opt", "srv", "var/backups", "var/mail", "var/opt", "var/spool",
            "var/local")  # fmt: skip
"""What the base of Debian has and a gate has no use for."""
ACCOUNT, GROUP = 10001, 0
STATE = "var/lib/tidegate"
"""Where the state's volume is mounted: any account of group 0 may write there."""


def root_files(raw: Path, layer: Path, epoch: int) -> None:
    """Write the layer of an image from mmdebstrap's archive."""
    with tarfile.open(raw) as found, tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as made:
        kept = {_name(entry): entry for entry in found.getmembers()}
        for name in sorted(_needed(kept)):
            entry = _plain(kept[name], name, epoch)
            made.addfile(entry, found.extractfile(kept[name]) if entry.isreg() else None)


def _name(entry: tarfile.TarInfo) -> str:
    return entry.name.removeprefix("./").strip("/")


def _needed(names: dict[str, tarfile.TarInfo]) -> Iterator[str]:
    for name in names:
        out = any(name == each or name.startswith(f"{each}/") for each in LEFT_OUT)
        if name not in ("", ".") and not out:
            yield name


def _plain(entry: tarfile.TarInfo, name: str, epoch: int) -> tarfile.TarInfo:
    """The entry with nothing of the build in it. No file has the rights of its owner to run."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mtime = entry.type, entry.linkname, epoch
    if entry.islnk():
        made.linkname = entry.linkname.removeprefix("./")
    made.size = entry.size if entry.isreg() else 0
    made.mode = entry.mode & 0o1755 | (0o444 if entry.isreg() else 0)
    if name == "tmp":
        made.mode = 0o1777
    if name == STATE:
        made.uid, made.gid, made.mode = ACCOUNT, GROUP, 0o770
    return made
