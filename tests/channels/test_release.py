"""`./dev release` builds from a commit, twice with the same bytes, or says what is wrong."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from release import Refusal
from release.contents import check_packages, read_wheel

from support.release_repository import (
    JAR,
    build_once,
    build_tool,
    commit,
    git,
    path_without_compilers,
    release,
)
from tidegate import __version__

HOST_OF_A_REGISTRY = re.compile(rb"://[\w.-]*(?:pypi|pythonhosted|npmjs)[\w.-]*")


@pytest.fixture
def changed(repository: Path, tmp_path: Path) -> Path:
    """A repository that a test may change."""
    copy = tmp_path / "changed"
    git(tmp_path, "clone", "--quiet", str(repository), str(copy))
    return copy


@pytest.fixture
def unpacked(released: Path, tmp_path: Path) -> Path:
    with tarfile.open(released / f"tidegate-{__version__}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / f"tidegate-{__version__}"


def test_it_has_both_packages_the_files_of_the_channels_and_checksums(released: Path) -> None:
    assert sorted(path.name for path in released.iterdir()) == [
        "SHA256SUMS", "server.json", f"tidegate-{__version__}-py3-none-any.whl",
        f"tidegate-{__version__}.tar.gz", "tidegate-plugin.zip", "tidegate.mcpb",
    ]  # fmt: skip
    lines = (released / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 5
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((released / name).read_bytes()).hexdigest() == digest


def test_the_same_commit_in_another_folder_gives_the_same_bytes(
    repository: Path, released: Path, changed: Path, tmp_path: Path
) -> None:
    (changed / "left-over.txt").write_text("not committed")
    (changed / "src" / "tidegate" / "left_over.py").write_text("")
    again = build_once(changed, tmp_path / "again")
    found, wanted = (
        {each.name: each.read_bytes() for each in at.iterdir()} for at in (again, released)
    )
    del wanted["SHA256SUMS"]
    assert found == wanted


def test_no_file_names_the_host_of_a_registry(released: Path, unpacked: Path) -> None:
    texts = [path for path in unpacked.rglob("*") if path.is_file()]
    for archive in (released / "tidegate.mcpb", released / "tidegate-plugin.zip"):
        with zipfile.ZipFile(archive) as packed:
            names = packed.namelist()
            assert not [name for name in names if name.endswith((".lock", ".whl"))]
            for name in names:
                assert not HOST_OF_A_REGISTRY.search(packed.read(name)), name
    for path in (released / "server.json", *texts):
        assert not HOST_OF_A_REGISTRY.search(path.read_bytes()), path


@pytest.mark.parametrize("missing", ["LICENSE", "NOTICE"])
def test_without_the_license_or_the_notice_there_is_none(
    changed: Path, tmp_path: Path, missing: str
) -> None:
    (changed / missing).unlink()
    commit(changed)
    done = release(changed, tmp_path / "dist")
    assert done.returncode == 1
    assert missing in done.stderr and not (tmp_path / "dist").exists()


@pytest.mark.parametrize("missing", ["LICENSE", "NOTICE"])
def test_packages_without_the_license_or_the_notice_are_refused(
    released: Path, tmp_path: Path, missing: str
) -> None:
    for path in released.glob("tidegate-*"):
        shutil.copy(path, tmp_path)
    check_packages(tmp_path, __version__)
    (wheel,) = tmp_path.glob("*.whl")
    files = read_wheel(wheel)
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, content in files.items():
            if not name.endswith(f"/licenses/{missing}"):
                packed.writestr(name, content)
    with pytest.raises(Refusal, match=f"{missing} is missing or empty"):
        check_packages(tmp_path, __version__)


def test_with_two_versions_there_is_none(changed: Path, tmp_path: Path) -> None:
    changelog = changed / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace(f"## {__version__}", "## 9.0.0"))
    commit(changed)
    done = release(changed, tmp_path / "dist")
    assert done.stderr == (
        f"release: CHANGELOG.md has the version 9.0.0, and pyproject.toml {__version__}.\n"
    )


def test_without_a_compiler_there_is_none(changed: Path, tmp_path: Path) -> None:
    done = release(changed, tmp_path / "dist", PATH=path_without_compilers(tmp_path / "bin"))
    assert done.returncode == 1
    assert "neither javac nor ecj is installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_distribution_is_not_built_with_an_old_jar(changed: Path, tmp_path: Path) -> None:
    """What lies in a checkout may be of other sources."""
    (changed / JAR).write_bytes(b"old")
    path = path_without_compilers(tmp_path / "bin")
    done = build_tool(changed, "hatchling", "build", "-t", "sdist", "-d", str(tmp_path), PATH=path)
    assert done.returncode != 0
    assert "neither javac nor ecj is installed" in done.stdout + done.stderr


def test_a_wheel_of_the_source_distribution_takes_its_jar(unpacked: Path, tmp_path: Path) -> None:
    """With and without a compiler: what was released is what is installed."""
    jar = unpacked / JAR
    jar.write_bytes(b"as it was released")
    path = path_without_compilers(tmp_path / "bin")
    for number, variables in enumerate(({}, {"PATH": path})):
        folder = tmp_path / f"wheel{number}"
        words = ("build", "-t", "wheel", "-d", str(folder))
        done = build_tool(unpacked, "hatchling", *words, **variables)
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            assert wheel.read(JAR.removeprefix("src/")) == b"as it was released"


def test_a_wheel_of_a_checkout_is_built_without_a_compiler(changed: Path, tmp_path: Path) -> None:
    path = path_without_compilers(tmp_path / "bin")
    done = build_tool(changed, "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), PATH=path)
    assert done.returncode == 0
    assert "worker.jar is not compiled" in done.stdout + done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert JAR.removeprefix("src/") not in wheel.namelist()


def test_a_folder_that_has_files_is_left_alone(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = release(repository, tmp_path)
    assert done.returncode == 1 and "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
