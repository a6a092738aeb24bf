"""The image of `./dev image --test`, run by podman as the guide says. It takes minutes and needs
podman and runc, so it is a command of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from release.image import MOST_BYTES

from support.command_line import environment
from support.documents import ROOT, is_as_shown, play, report
from support.eventually import HANG_S
from tidegate import __version__

FOLDER = os.environ.get("TIDEGATE_TEST_IMAGE", "")
pytestmark = [
    pytest.mark.needs("every product"),
    pytest.mark.skipif(not FOLDER, reason="./dev image --test"),
]
IMAGE = f"localhost/tidegate:{__version__}"
GUIDE = ROOT / "docs" / "howto" / "run-in-a-container.md"
LIMITED = ("--network=none", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
HARD = (
    "--read-only",
    "--read-only-tmpfs=false",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
)
USES = """
import opentelemetry.exporter.otlp.proto.common.trace_encoder, opentelemetry.sdk.metrics
import asyncmy, boto3, duckdb, hvac, jwt, prometheus_client, psycopg, python_calamine, pytz, ssl
import uvloop
from zoneinfo import ZoneInfo
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 100
assert ZoneInfo("Europe/Berlin") and duckdb.connect().execute("SELECT 42").fetchone() == (42,)
import sqlglot
assert sqlglot.parse_one("SELECT a FROM b", read="postgres").sql("mysql") == "SELECT a FROM b"
aws = boto3.Session(region_name="eu-west-1")
assert [aws.client(name) for name in ("secretsmanager", "rds", "sts", "sso", "sso-oidc")]
assert sqlglot.tokenizer_core.__file__.endswith(".so"), "the compiled parser"
"""


@pytest.fixture(scope="module")
def archive() -> Path:
    (found,) = Path(FOLDER).glob("*.oci.tar")
    return found


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a `podman` that has a store of its own, and runs what it runs as this machine
    can: by runc, in no network."""
    place = tmp_path_factory.mktemp("podman")
    program = place / "podman"
    program.write_text(
        "#!/usr/bin/env bash\n"
        f"own=(--root '{place}/store' --runroot '{place}/run' --storage-driver vfs\n"
        "    --cgroup-manager cgroupfs --runtime runc)\n"
        'if [ "$1" = run ]; then shift; words=()\n'
        "    while [ $# -gt 0 ]; do\n"
        '        case $1 in --publish) shift 2 ;; *) words+=("$1"); shift ;; esac\n'
        "    done\n"
        f'    set -- run {" ".join(LIMITED)} "${{words[@]}}"\n'
        "fi\n"
        f'exec "{shutil.which("podman")}" "${{own[@]}}" "$@"\n'
    )
    program.chmod(0o755)
    yield place
    subprocess.run([program, "rm", "--all", "--force"], capture_output=True)
    subprocess.run([program, "rmi", "--all", "--force"], capture_output=True)


def run(podman: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [podman / "podman", *words], input=text, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def image(podman: Path, archive: Path) -> str:
    loaded = run(podman, "load", "--input", str(archive))
    assert loaded.returncode == 0, loaded.stderr
    return IMAGE


def test_the_guide_to_containers_prints_what_it_shows(
    podman: Path, archive: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "guide.md"
    text = GUIDE.read_text("utf-8")
    named = f"build/image/tidegate-{__version__}-amd64.oci.tar"
    assert named in text
    copy.write_text(text.replace(named, str(archive)), "utf-8")
    outcomes = play(
        copy,
        tmp_path,
        {**environment(), "PATH": f"{podman}{os.pathsep}{os.environ['PATH']}"},
        leave_out=lambda command: command.text.startswith("./dev") or "--tty" in command.text,
    )
    assert len(outcomes) == 6
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


@pytest.mark.parametrize("account", ["10001:0", "54321:0", "0:0"])
def test_any_account_runs_it_on_a_root_that_is_read_only(
    podman: Path, image: str, account: str
) -> None:
    name = f"gate-{account.partition(':')[0]}"
    state = ("--volume", f"{name}:/var/lib/tidegate")
    begun = run(podman, "run", "--detach", "--name", name, *HARD, *state, "--user", account, image)
    assert begun.returncode == 0, begun.stderr
    late = time.monotonic() + HANG_S
    while (asked := run(podman, "exec", name, "tidegate", "health")).returncode:
        runs = run(podman, "inspect", "--format", "{{.State.Running}}", name).stdout == "true\n"
        assert runs and time.monotonic() < late, run(podman, "logs", name).stderr
    assert asked.stdout == "ready\n"
    assert run(podman, "stop", "--time", "30", name).returncode == 0
    assert run(podman, "inspect", "--format", "{{.State.ExitCode}}", name).stdout == "0\n"
    log = [json.loads(line) for line in run(podman, "logs", name).stderr.splitlines()]
    assert log and all(line["level"] != "ERROR" for line in log), log


def test_its_parts_work(podman: Path, image: str) -> None:
    python = ("--entrypoint", "/usr/bin/python3.11")
    ran = run(podman, "run", "--rm", *HARD, *python, image, "-c", USES)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "duckdb:///:memory:"])
def test_a_gate_on_stdio_answers_a_statement(podman: Path, image: str, url: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    arguments = {"sql": "SELECT 6 * 7 AS n", "source": "shop"}
    params = {"name": "query", "arguments": arguments, "_meta": meta}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    words = ("serve", "--config", "{}", "--source", f"shop={url}")
    mounts = ("--tmpfs", "/var/lib/tidegate:mode=1777", "--tmpfs", "/tmp")
    ran = run(podman, "run", "--rm", "-i", *HARD, *mounts, image, *words, text=f"{frame}\n")
    assert "42" in ran.stdout, ran.stdout + ran.stderr


def test_nothing_else_is_in_it(podman: Path, image: str, archive: Path) -> None:
    refused = run(podman, "run", "--rm", "--entrypoint", "/bin/sh", image, "-c", "true")
    assert refused.returncode == 127
    with tarfile.open(archive) as layout:

        def read(name: str) -> Any:
            found = layout.extractfile(name)
            assert found is not None
            return found

        digest = json.load(read("index.json"))["manifests"][0]["digest"]
        assert (archive.parent / "digest").read_text() == f"{digest}\n"
        (layer,) = json.load(read(f"blobs/{digest.replace(':', '/')}"))["layers"]
        assert layer["size"] <= MOST_BYTES
        with tarfile.open(fileobj=read(f"blobs/{layer['digest'].replace(':', '/')}")) as files:
            entries = {entry.name: entry for entry in files}
    assert [name for name, each in entries.items() if each.mode & 0o6000] == []
    assert {each.mtime for each in entries.values()} == {next(iter(entries.values())).mtime}
    programs = [name for name in entries if name.split("/")[0] in ("bin", "sbin")]
    programs += [name for name in entries if name.startswith(("usr/bin/", "usr/sbin/"))]
    assert [name for name in programs if "python3" not in name and name.count("/")] == []
    assert "var/lib/dpkg/status.d/libc6" in entries
