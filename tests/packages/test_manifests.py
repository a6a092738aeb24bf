"""The compose file and the manifest for Kubernetes: by the published schemas, and by what the gate
does when it is asked and stopped."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from external.install import python_of
from support.documents import ROOT
from tidegate import __version__
from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.products.metrics.settings import MetricsSettings

DEPLOY = ROOT / "deploy"
MANIFEST = DEPLOY / "kubernetes" / "tidegate.yaml"
COMPOSE = DEPLOY / "container" / "compose.yaml"
SLACK_S = 5
pytestmark = pytest.mark.needs("metrics")


def settings(text: str, directory: Path) -> Config:
    file = directory / "settings.toml"
    file.write_text(text)
    file.chmod(0o600)
    return load(str(file))


def parts() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text("utf-8"))}


def pod() -> Any:
    return parts()["StatefulSet"]["spec"]["template"]["spec"]


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    words = [str(python_of("manifests")), "-m", "kubernetes_validate", "--strict", str(file)]
    return subprocess.run(words, capture_output=True, text=True)


def test_the_manifest_is_valid_and_a_misspelt_probe_is_not(tmp_path: Path) -> None:
    ran = validate(MANIFEST)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFEST.read_text("utf-8").replace("livenessProbe", "livelinessProbe"))
    assert validate(wrong).returncode != 0


def test_a_gate_in_a_cluster_has_the_time_to_drain_and_to_finish(tmp_path: Path) -> None:
    config = settings(parts()["ConfigMap"]["data"]["settings.toml"], tmp_path)
    grace_s = pod()["terminationGracePeriodSeconds"]
    assert grace_s >= config.drain_delay_s + config.stop_grace_s + SLACK_S
    ready = pod()["containers"][0]["readinessProbe"]
    seen_s = ready["failureThreshold"] * ready["periodSeconds"] + ready["timeoutSeconds"]
    assert config.drain_delay_s > seen_s, "it is seen before the port closes"


def test_what_restarts_a_gate_asks_only_whether_it_is_alive(tmp_path: Path) -> None:
    (gate,) = pod()["containers"]
    paths = {name: gate[name]["httpGet"]["path"] for name in gate if name.endswith("Probe")}
    assert paths == {
        "startupProbe": "/health", "livenessProbe": "/health", "readinessProbe": "/ready"
    }  # fmt: skip
    config = settings(parts()["ConfigMap"]["data"]["settings.toml"], tmp_path)
    life = gate["livenessProbe"]
    assert life["failureThreshold"] * life["periodSeconds"] > config.stop_grace_s
    ports = {each["name"]: each["containerPort"] for each in gate["ports"]}
    listens = {"http": config.http, "metrics": config.section(MetricsSettings).listen}
    assert listens == {name: f"0.0.0.0:{port}" for name, port in ports.items()}


def test_a_gate_in_a_container_may_do_nothing_that_it_need_not(tmp_path: Path) -> None:
    account = pod()["securityContext"]
    (gate,) = pod()["containers"]
    assert account["runAsNonRoot"] and account["fsGroupChangePolicy"] == "OnRootMismatch"
    assert gate["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert parts()["StatefulSet"]["spec"]["replicas"] == 1
    service = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]["gate"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"] == ["CMD", "tidegate", "health"]


def test_a_composed_gate_has_the_time_to_drain_and_to_finish(tmp_path: Path) -> None:
    service = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]["gate"]
    text = (DEPLOY / "container" / "compose-settings.toml").read_text("utf-8")
    config = settings(text, tmp_path)
    grace_s = float(service["stop_grace_period"].removesuffix("s"))
    assert grace_s >= config.drain_delay_s + config.stop_grace_s + SLACK_S


@pytest.mark.parametrize("file", [MANIFEST, COMPOSE], ids=lambda file: file.name)
def test_it_names_the_image_of_this_version(file: Path) -> None:
    assert f"tidegate:{__version__}\n" in file.read_text("utf-8")


def test_what_a_service_runs_with_are_the_versions_that_the_tests_use() -> None:
    def pins(name: str) -> dict[str, str]:
        lines = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8").splitlines()
        pairs = (line.partition("==") for line in lines if "==" in line and line[0] != "#")
        return {name.partition("[")[0].lower(): version for name, _, version in pairs}

    service = pins("service")
    assert service == {name: version(name) for name in service}
    left_out = {"markdown-it-py", "mdurl", "pygments", "rich"}  # the demo's, at a terminal
    assert pins("run").keys() - left_out <= service.keys()
