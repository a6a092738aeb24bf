"""`python -m release [FOLDER]`: build twice, compare, check, and write the files with checksums."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from release import Refusal
from release.building import build_all, read_commit, run
from release.command import ROOT, run_command
from release.contents import check_packages, check_texts
from release.versions import read_version

UMASKS = {"one": 0o022, "another": 0o077}
"""By folder. The names differ in length: a path that got into a file would change it."""
CHECKSUMS = "SHA256SUMS"


def main() -> int:
    """Build into the folder that is named, `dist` if none is; returns an exit status."""
    return run_command("release", __doc__, "dist", _release_here)


def _release_here(folder: Path) -> list[str]:
    return [f"{file.stat().st_size:>10,}  {file}" for file in release(ROOT, folder)]


def release(repository: Path, folder: Path) -> list[Path]:
    """Build the release of the commit that is checked out in `repository` and write it to `folder`,
    which has nothing else. Raises: Refusal; then the folder is left as it was."""
    if folder.exists() and any(folder.iterdir()):
        raise Refusal(f"{folder} is not empty: name another folder, or empty it.")
    commit = read_commit(repository)
    check_texts(run(["git", "ls-tree", "--name-only", commit.name], repository, 0o022).split())
    with tempfile.TemporaryDirectory(prefix="release-") as place:
        first, second = (
            build_all(repository, commit, Path(place) / name, umask)
            for name, umask in UMASKS.items()
        )
        compare(first, second)
        check_packages(first, read_version(Path(place) / "one" / "tree"))
        return _write(first, folder)


def compare(first: Path, second: Path) -> None:
    """Raises: Refusal unless both folders have the same files with the same bytes."""
    names = [sorted(path.name for path in build.iterdir()) for build in (first, second)]
    if names[0] != names[1]:
        raise Refusal(f"Two builds have different files: {names[0]} and {names[1]}.")
    for name in names[0]:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise Refusal(f"Two builds of {name} differ.")


def _write(build: Path, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = [Path(shutil.copyfile(path, folder / path.name)) for path in sorted(build.iterdir())]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in written]
    sums = folder / CHECKSUMS
    sums.write_text("".join(lines), "utf-8")
    return [*written, sums]


if __name__ == "__main__":
    sys.exit(main())
