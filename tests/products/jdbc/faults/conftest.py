"""A JDBC driver that does what statements tell it to do, and nothing that a driver should."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("HostileDriver.java")


@pytest.fixture(scope="session")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver, compiled."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("needs a Java compiler (the package default-jdk-headless)")
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([compiler, "-d", str(folder / "classes"), str(SOURCE)], check=True)
    with zipfile.ZipFile(folder / "hostile.jar", "w") as archive:
        for each in (folder / "classes").glob("*.class"):
            archive.write(each, each.name)
        archive.writestr("META-INF/services/java.sql.Driver", "HostileDriver")
    return folder / "hostile.jar"
