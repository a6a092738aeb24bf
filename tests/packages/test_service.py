"""The unit of systemd, its drop-in for Java and its settings, by systemd's own tools."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest
from release.unit import MOST_EXPOSURE, read_exposure

from support.documents import ROOT
from tidegate.config.loading import load
from tidegate.errors import ERRORS, Code
from tidegate.products.metrics.settings import MetricsSettings

SYSTEMD = ROOT / "deploy" / "systemd"
pytestmark = pytest.mark.needs("metrics")
analyzed = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)


def unit() -> configparser.RawConfigParser:
    """The unit; of a setting that is given twice the last."""
    parsed = configparser.RawConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string((SYSTEMD / "tidegate.service").read_text("utf-8"))
    return parsed


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program and an account that are here."""
    program = tmp_path / "tidegate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (SYSTEMD / "tidegate.service").read_text("utf-8")
    for named, here in (("/opt/tidegate/bin/tidegate", str(program)), ("=tidegate\n", "=daemon\n")):
        assert named in text
        text = text.replace(named, here)
    file = tmp_path / "tidegate.service"
    file.write_text(text)
    return file


@analyzed
@pytest.mark.parametrize("with_java", [False, True])
def test_systemd_reads_the_unit_without_a_word(installed: Path, with_java: bool) -> None:
    if with_java:
        drop_in = installed.parent / "tidegate.service.d" / "java.conf"
        drop_in.parent.mkdir()
        shutil.copyfile(SYSTEMD / "java.conf", drop_in)
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(installed)], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@analyzed
def test_it_is_hardly_exposed() -> None:
    assert read_exposure(SYSTEMD / "tidegate.service") <= MOST_EXPOSURE


def test_it_stops_as_the_gate_does_and_is_not_started_again_with_wrong_settings() -> None:
    service = dict(unit()["Service"])
    assert service["Type"] == "notify"
    assert service["KillMode"] == "mixed", "workers are ended by the gate, after their calls"
    assert service["ExecReload"].endswith("-HUP $MAINPID")
    wrong = ERRORS[Code.CONFIG_INVALID].exit_status
    assert service["RestartPreventExitStatus"] == str(wrong)
    assert "ProcSubset" not in service, "the figures of the process need /proc/stat"


def test_the_settings_are_those_of_a_gate_that_drains(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text((SYSTEMD / "settings.toml").read_text("utf-8").replace("# [[", "[[").replace(
        "# name", "name").replace("# url", "url"))  # fmt: skip
    file.chmod(0o600)
    config = load(str(file))
    assert config.state == "/var/lib/tidegate"
    assert config.drain_delay_s and config.section(MetricsSettings).listens
    (source,) = config.sources
    name = unit()["Service"]["LoadCredential"].partition(":")[0]
    assert f"/run/credentials/tidegate.service/{name}_shop" in source.url
