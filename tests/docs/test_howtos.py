"""The commands of the guides, run on the real thing: what they name is replaced by what is here."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import support.postgres_server as postgres_server
import support.ssh_server as ssh_server
from support import jdbc_drivers
from support.cloud_surface import write_desk
from support.command_line import environment
from support.documents import ROOT, is_as_shown, play, report
from support.free_ports import claim_port
from support.maven_repository import DEBIAN, serve_repository


@pytest.mark.skipif(not ssh_server.available(), reason="needs openssh-server")
def test_the_way_through_ssh_prints_what_it_shows(tmp_path: Path) -> None:
    database = postgres_server.Server(postgres_server.available()["wheel"])
    database.ask("CREATE DATABASE shop")
    database.ask(
        f"CREATE ROLE reader LOGIN PASSWORD '{postgres_server.PASSWORD}';"
        "CREATE TABLE items (id int PRIMARY KEY); INSERT INTO items SELECT generate_series(1, 10);"
        "GRANT SELECT ON items TO reader",
        "shop",
    )
    sshd = ssh_server.Server()
    try:
        keys = tmp_path / ".ssh"
        keys.mkdir(mode=0o700)
        shutil.copy(sshd.directory / "welcome", keys / "tidegate")
        guide = (ROOT / "docs" / "howto" / "connect-through-ssh.md").read_text("utf-8")
        for named, here in (
            ("gate@bastion.example:22", f"{sshd.user}@127.0.0.1:{sshd.port}"),
            ("-p 22 bastion.example", f"-p {sshd.port} 127.0.0.1"),
            ("db.example:5432", f"127.0.0.1:{database.port}"),
        ):
            assert named in guide
            guide = guide.replace(named, here)
        copy = tmp_path / "guide.md"
        copy.write_text(guide, "utf-8")
        outcomes = play(
            copy,
            tmp_path,
            {
                **environment(tmp_path / "state"),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(tmp_path),
                "SHOP_PASSWORD": postgres_server.PASSWORD,
            },
            leave_out=lambda command: "-t ed25519 -N" in command.text,
        )
    finally:
        sshd.close()
        database.close()
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


def test_the_guide_to_roles_prints_what_it_shows(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "howto" / "map-callers-to-roles.md").read_text("utf-8")
    setup = guide.partition("```sql\n")[2].partition("```")[0]
    database = postgres_server.Server(postgres_server.available()["wheel"])
    try:
        database.ask("CREATE DATABASE shop")
        database.ask(setup, "shop")
        copy = tmp_path / "guide.md"
        assert "db.example:5432" in guide
        copy.write_text(guide.replace("db.example:5432", f"127.0.0.1:{database.port}"), "utf-8")
        outcomes = play(
            copy,
            tmp_path,
            {
                **environment(tmp_path / "state"),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(tmp_path),
                "SHOP_PASSWORD": "correct horse",
            },
        )
    finally:
        database.close()
    assert len(outcomes) == 6
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


@pytest.mark.parametrize(
    "guide",
    [
        "find-out-what-happened",
        "approve-a-write",
        "put-rows-back",
        "administer-a-database",
        "give-an-agent-two-tables",
        "connect-a-client",
        "on-call",
    ],
)
def test_a_guide_on_the_sample_prints_what_it_shows(guide: str, tmp_path: Path) -> None:
    port = claim_port()
    text = (ROOT / "docs" / "howto" / f"{guide}.md").read_text("utf-8")
    copy = tmp_path / "guide.md"
    copy.write_text(text.replace("127.0.0.1:7878", f"127.0.0.1:{port}"), "utf-8")
    outcomes = play(
        copy,
        tmp_path,
        {
            **environment(tmp_path / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
        },
    )
    assert outcomes
    for outcome in outcomes:
        assert is_as_shown(outcome), report(outcome)


def test_the_guide_to_files_prints_what_it_shows(tmp_path: Path) -> None:
    outcomes = play(
        ROOT / "docs" / "howto" / "analyse-files.md",
        tmp_path,
        {
            **environment(tmp_path / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert len(outcomes) == 12
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


def test_the_guide_to_jdbc_prints_what_it_shows(tmp_path: Path) -> None:
    jdbc_drivers.driver_path("h2")
    versions = [each.name for each in (DEBIAN / "com/h2database/h2").glob("[0-9]*")]
    if shutil.which("java") is None or not versions:
        pytest.skip("needs java on the PATH, and Debian's H2 (the package libh2-java)")
    guide = (ROOT / "docs" / "howto" / "connect-any-jdbc-database.md").read_text("utf-8")
    copy = tmp_path / "guide.md"
    with serve_repository(DEBIAN) as repository:
        guide = guide.replace("https://maven.example.com/repository", repository.url)
        copy.write_text(guide.replace("2.2.224", versions[0]), "utf-8")
        outcomes = play(
            copy,
            tmp_path,
            {
                **environment(tmp_path / "state"),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
        )
    assert len(outcomes) == 15
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


def test_the_guide_to_deployments_prints_what_it_shows(tmp_path: Path) -> None:
    write_desk(tmp_path / "state" / "cloud")
    (tmp_path / "state").chmod(0o700)
    guide = (ROOT / "docs" / "howto" / "choose-a-deployment.md").read_text("utf-8")
    for port in ("7878", "5433"):
        guide = guide.replace(port, str(claim_port()))
    copy = tmp_path / "guide.md"
    copy.write_text(guide, "utf-8")
    outcomes = play(
        copy,
        tmp_path,
        {
            **environment(tmp_path / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert len(outcomes) == 19
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)


def test_the_guide_to_the_console_adds_the_people_that_it_shows(tmp_path: Path) -> None:
    for name in ("ada", "bob"):
        (tmp_path / f"{name}.txt").write_text(f"passphrase of {name}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    surroundings = {**environment(tmp_path / "state"), "PATH": path, "HOME": str(tmp_path)}
    guide = ROOT / "docs" / "howto" / "approve-in-the-console.md"
    copy = tmp_path / "guide.md"
    source = "$ tidegate source add shop sqlite:///shop.db\nadded shop (sqlite, read)\n"
    made = (
        '$ python3 -c \'import sqlite3; sqlite3.connect("shop.db").execute("CREATE TABLE t(a)")\''
    )
    added = f"## More people\n\n```console\n{made}\n{source}```\n"
    copy.write_text(guide.read_text("utf-8").replace("## More people\n", added), "utf-8")
    serves = ("tidegate console", "tidegate serve")  # which tests/products/console/browser does
    outcomes = play(
        copy, tmp_path, surroundings, leave_out=lambda command: command.text.startswith(serves)
    )
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert outcome.status == 0 and is_as_shown(outcome), report(outcome)
