"""The unit under a real systemd, in a container that mmdebstrap fills: `./dev unit --test`.

It takes a minute or two and needs podman, runc and root, so it is a command of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documents import ROOT

FOLDER = os.environ.get("TIDEGATE_TEST_UNIT", "")
pytestmark = [
    pytest.mark.needs("every product"),
    pytest.mark.skipif(not FOLDER, reason="./dev unit --test"),
]
PACKAGES = (
    "systemd,systemd-sysv,dbus,procps,libseccomp2,libstdc++6,python3.11-minimal,"
    "libpython3.11-stdlib,python3.11-venv"
)
SETTINGS = """
state = "/var/lib/tidegate"
http = "127.0.0.1:7878"
auth = false
drain_delay_s = 1
stop_grace_s = 5
[metrics]
listen = "127.0.0.1:9464"
token = "${FILE:/run/credentials/tidegate.service/secret_figures}"
[[sources]]
name = "duck"
url = "duckdb:///:memory:"
[[sources]]
name = "lite"
url = "sqlite:///:memory:"
"""
ASK = """
import json, sys
from http.client import HTTPConnection
def ask(port, method, path, body=None, **headers):
    made = HTTPConnection("127.0.0.1", port)
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    made.request(method, path, body, sent)
    return made.getresponse().read().decode()
meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
for source in ("lite", "duck"):
    arguments = {"sql": "SELECT 6 * 7 AS n", "source": source}
    params = {"name": "query", "arguments": arguments, "_meta": meta}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    said = ask(7878, "POST", "/mcp", json.dumps(frame), Content_Type="application/json",
               MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name="query")
    assert "[[42]]" in said, said
figures = ask(9464, "GET", "/metrics", Authorization="Bearer hunter2")
assert "process_resident_memory_bytes" in figures and "process_open_fds" in figures, figures
"""
SET_UP = """
set -e
mount --make-rshared /run
mount --make-rshared /
python3.11 -m venv --without-pip /opt/tidegate
cp -r /packages/. /opt/tidegate/lib/python3.11/site-packages/
cat > /opt/tidegate/bin/tidegate <<'END'
#!/opt/tidegate/bin/python
from tidegate.__main__ import main
raise SystemExit(main())
END
chmod 755 /opt/tidegate/bin/tidegate
cd /unit
install -D -m 644 sysusers.conf /etc/sysusers.d/tidegate.conf
systemd-sysusers
install -d -m 700 /etc/tidegate/secrets
echo hunter2 > /etc/tidegate/secrets/figures
install -m 644 tidegate.service /etc/systemd/system/tidegate.service
install -d /etc/systemd/system/tidegate.service.d
printf '[Service]\\nLimitNOFILE=4096\\n' > /etc/systemd/system/tidegate.service.d/here.conf
systemctl daemon-reload
"""


def must(*words: str | Path, text: str = "") -> str:
    """What a program prints; it ends well."""
    ran = subprocess.run(words, input=text, capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


class Machine:
    """A container in which systemd is process 1. This machine may not raise limits of files."""

    def __init__(self, place: Path) -> None:
        self._podman = (
            *("podman", "--root", f"{place}/store", "--runroot", f"{place}/run"),
            *("--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "runc"),
        )
        packages = place / "packages"
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
        pins = ROOT / "requirements" / "service.txt"
        (wheel,) = Path(FOLDER).glob("*.whl")
        must(*pip, "--target", packages, "-r", pins, wheel)
        archive = place / "root.tar"
        essential = ("mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}")
        must(*essential, "--format=tar", "bookworm", archive)
        must(*self._podman, "import", "--quiet", archive, "machine")
        archive.unlink()
        must(
            *self._podman, "run", "--detach", "--name", "machine", "--systemd=always",
            "--privileged", "--network=none", "--ulimit=nofile=4096:4096",
            "--ulimit=nproc=4096:4096", "--volume", f"{packages}:/packages:ro",
            "--volume", f"{FOLDER}:/unit:ro", "machine", "/lib/systemd/systemd",
        )  # fmt: skip
        self.run(
            "until systemctl is-system-running | grep -E 'running|degraded'; do sleep 0.2; done"
        )
        self.run(SET_UP)

    def run(self, script: str) -> str:
        return must(*self._podman, "exec", "-i", "machine", "bash", "-s", text=script)

    def show(self, *names: str) -> dict[str, str]:
        asked = " ".join(f"-p {name}" for name in names)
        lines = self.run(f"systemctl show {asked} tidegate").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def write_settings(self, text: str) -> None:
        self.run(f"cat > /etc/tidegate/settings.toml <<'END'\n{text}\nEND\n")

    def close(self) -> None:
        subprocess.run((*self._podman, "rm", "--all", "--force"), capture_output=True)
        subprocess.run((*self._podman, "rmi", "--all", "--force"), capture_output=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    assert sysconfig.get_python_version() == "3.11", "the wheels are those of the machine's Python"
    made = Machine(tmp_path_factory.mktemp("machine"))
    yield made
    made.close()


def test_it_serves_within_its_bounds_reloads_and_stops_in_its_own_time(machine: Machine) -> None:
    machine.write_settings(SETTINGS)
    machine.run("systemctl start tidegate")
    machine.run("/opt/tidegate/bin/tidegate health http://127.0.0.1:7878/ready")
    machine.run(f"/opt/tidegate/bin/python - <<'END'\n{ASK}\nEND\n")
    machine.run("systemctl reload tidegate")
    assert machine.show("ActiveState", "NRestarts") == {"ActiveState": "active", "NRestarts": "0"}
    machine.run("systemctl stop tidegate")
    assert machine.show("Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
    log = machine.run("journalctl -u tidegate -o cat --no-pager")
    assert "stops in 1 s" in log and "EPERM" not in log


def test_wrong_settings_end_the_start_and_it_is_not_tried_again(machine: Machine) -> None:
    machine.write_settings('htttp = "127.0.0.1:7878"')
    machine.run("! systemctl start tidegate")
    machine.run("sleep 3")  # what `RestartSec` would wait
    assert machine.show("ActiveState", "NRestarts", "ExecMainStatus") == {
        "ActiveState": "failed", "NRestarts": "0", "ExecMainStatus": "78",
    }  # fmt: skip
