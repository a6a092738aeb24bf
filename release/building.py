"""One build of everything: from a commit a source distribution, from that the wheel, and what the
channels need. Nothing of the working tree gets in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from release import Commit, Refusal
from release.channels import write_bundle, write_plugin, write_server_description
from release.versions import check_versions


def read_commit(repository: Path) -> Commit:
    """The commit that is checked out. Raises: Refusal."""
    shown = run(["git", "log", "-1", "--format=%H %ct"], repository, 0o022).split()
    return Commit(shown[0], int(shown[1]))


def build_all(repository: Path, commit: Commit, base: Path, umask: int) -> Path:
    """Build below `base`, whose `tree` has the commit's files then; returns the folder of the
    results. Raises: Refusal."""
    tree = check_out(repository, commit, base, umask)
    source, results = base / "source", base / "results"
    for folder in (source, results):
        folder.mkdir()
    check_versions(tree)
    build(tree, "sdist", results, commit, umask)
    (packed,) = results.glob("*.tar.gz")
    unpack(packed, source, umask)
    (unpacked,) = source.iterdir()
    build(unpacked, "wheel", results, commit, umask)
    channels = tree / "release" / "channels"
    write_server_description(channels, results)
    write_bundle(channels, results, commit)
    write_plugin(channels, results, commit)
    return results


def check_out(repository: Path, commit: Commit, base: Path, umask: int) -> Path:
    """The folder `tree` below `base`, with the commit's files alone. Raises: Refusal."""
    tree, archive = base / "tree", base / "commit.tar"
    tree.mkdir(parents=True)
    run(["git", "archive", "--output", str(archive), commit.name], repository, umask)
    unpack(archive, tree, umask)
    return tree


def build(tree: Path, target: str, results: Path, commit: Commit, umask: int) -> None:
    """Build a distribution of a tree's package. Raises: Refusal."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(results)]
    run(words, tree, umask, SOURCE_DATE_EPOCH=str(commit.epoch))


def unpack(archive: Path, folder: Path, umask: int) -> None:
    """Unpack with the modes that the umask gives, as a checkout would. Raises: Refusal."""
    run(["tar", "--no-same-permissions", "-xf", str(archive)], folder, umask)


def run(words: Sequence[str], folder: Path, umask: int, **variables: str) -> str:
    """What a program prints. Raises: Refusal if it fails, with its last line."""
    done = subprocess.run(
        words, cwd=folder, umask=umask, env=os.environ | variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason").splitlines()[-1]
        raise Refusal(f"`{' '.join(words[:4])}` failed: {last}")
    return done.stdout
