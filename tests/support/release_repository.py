"""A repository with the files of this tree, committed or not, in which a release can be built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from external.install import python_of
from support.documents import ROOT

AUTHOR = ("-c", "user.name=Tests", "-c", "user.email=tests@example.com")
DATE = "2026-01-02T03:04:05Z"
JAR = "src/tidegate/products/jdbc/engine/jvm/worker.jar"


def git(folder: Path, *words: str) -> str:
    """What git prints. Commits have the same time, so that they are the same."""
    variables = os.environ | {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
    return subprocess.run(
        ["git", *AUTHOR, *words], cwd=folder, env=variables, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip


def copy_this_tree(folder: Path) -> Path:
    """Make a repository with one commit of the files of this tree."""
    if not (ROOT / ".git").exists():
        pytest.skip("a release is built from a repository, and this tree is none")
    for name in git(ROOT, "ls-files", "-z", "-co", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """Commit everything in the repository."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "everything")


def release(repository: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what `./dev release FOLDER` runs, with these variables."""
    return build_tool(repository, "release", str(folder), **variables)


ONE_BUILD = """
import sys
from pathlib import Path
from release.building import build_all, read_commit
here = Path.cwd()
print(build_all(here, read_commit(here), Path(sys.argv[1]), 0o027))
"""


def build_once(repository: Path, base: Path) -> Path:
    """One of the two builds of a release, below `base` and under another umask than both; returns
    the folder of its files."""
    words = [str(python_of("release")), "-c", ONE_BUILD, str(base)]
    done = subprocess.run(
        words, cwd=repository, capture_output=True, text=True, timeout=300, check=True
    )
    return Path(done.stdout.strip())


def build_tool(
    folder: Path, module: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of the environment that builds a release."""
    return subprocess.run(
        [str(python_of("release")), "-m", module, *words], cwd=folder,
        env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def path_without_compilers(folder: Path) -> str:
    """A PATH with what a release runs, but no Java compiler."""
    folder.mkdir()
    for program in ("git", "tar", "gzip"):
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    return str(folder)
