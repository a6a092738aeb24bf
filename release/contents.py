"""What the built packages must hold: the program of JDBC drivers, the license and the notice."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Collection
from io import BytesIO
from pathlib import Path

from release import Refusal

JAR = "tidegate/products/jdbc/engine/jvm/worker.jar"
MAIN_CLASS = "tidegate/Main.class"
TEXTS = ("LICENSE", "NOTICE")


def check_texts(names: Collection[str]) -> None:
    """Raises: Refusal if a commit with these files has no license or no notice, before it is built;
    `check_packages` says whether the packages have them."""
    for text in TEXTS:
        if text not in names:
            raise Refusal(f"{text} is missing in the commit.")


def check_packages(folder: Path, version: str) -> None:
    """Raises: Refusal if the wheel or the source distribution of the folder lacks something."""
    sdist = read_sdist(folder / f"tidegate-{version}.tar.gz")
    wheel = read_wheel(folder / f"tidegate-{version}-py3-none-any.whl")
    top, licenses = f"tidegate-{version}", f"tidegate-{version}.dist-info/licenses"
    for text in TEXTS:
        for name, held in ((f"{top}/{text}", sdist), (f"{licenses}/{text}", wheel)):
            if not held.get(name):
                raise Refusal(f"{name} is missing or empty.")
    packed, installed = sdist.get(f"{top}/src/{JAR}"), wheel.get(JAR)
    if packed is None or installed is None:
        raise Refusal(f"{JAR} is missing.")
    if packed != installed:
        raise Refusal(f"{JAR} in the wheel is not the one of the source distribution.")
    if not _has_main_class(installed):
        raise Refusal(f"{JAR} has no {MAIN_CLASS}.")


def read_sdist(path: Path) -> dict[str, bytes]:
    """The files of a source distribution by name. Raises: Refusal if it is not there."""
    _require(path)
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                found[member.name] = file.read()
    return found


def read_wheel(path: Path) -> dict[str, bytes]:
    """The files of a wheel by name. Raises: Refusal if it is not there."""
    _require(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _require(path: Path) -> None:
    if not path.is_file():
        raise Refusal(f"{path.name} was not built.")


def _has_main_class(jar: bytes) -> bool:
    try:
        with zipfile.ZipFile(BytesIO(jar)) as archive:
            return MAIN_CLASS in archive.namelist()
    except zipfile.BadZipFile:
        return False
