"""`tidegate driver`, and sources that name the coordinate of their driver."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from support import jdbc_drivers
from support.command_line import tidegate
from support.maven_repository import DEBIAN, MavenRepository, jar_of, serve_repository
from support.operator_terminal import operator_terminal
from tidegate.products.jdbc.engine.known_databases import known_database_of

DRIVER = "org.other:driver:1"


@pytest.fixture
def served() -> Generator[MavenRepository]:
    with serve_repository() as repository:
        repository.library(DRIVER, needs=["org.other:base:2", "org.other:extra:3 optional"])
        repository.library("org.other:base:2")
        yield repository


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: MavenRepository) -> None:
    """An operator who has set nothing but the repository."""
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"drivers": {"repository": served.url}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))


def config(tmp_path: Path) -> tuple[str, ...]:
    return ("--config", str(tmp_path / "settings.json"))


def test_a_driver_is_fetched_listed_verified_and_removed(
    tmp_path: Path, served: MavenRepository
) -> None:
    state = tmp_path / "state"
    fetched = tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=state)
    assert fetched.status == 0, fetched.err
    assert "downloading org.other:base:2" in fetched.err
    assert f"fetched {DRIVER}: 2 jars" in fetched.err and served.url in fetched.err
    assert "left out: org.other:extra (optional for org.other:driver:1)" in fetched.err
    (listed,) = tidegate("driver", "list", "--json", state=state).json["drivers"]
    assert listed["driver"] == DRIVER and len(listed["jars"]) == 2
    assert DRIVER in tidegate("driver", "list", state=state).out
    verified = tidegate("driver", "verify", state=state)
    assert (verified.status, verified.out) == (0, f"ok     {DRIVER}\n")
    again = tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=state)
    assert again.err == f"{DRIVER} is there\n"
    with operator_terminal() as terminal:
        assert tidegate("driver", "remove", DRIVER, state=state, terminal=terminal).status == 0
    assert tidegate("driver", "list", "--json", state=state).json == {"drivers": []}


def test_a_driver_that_changed_is_found(tmp_path: Path) -> None:
    state = tmp_path / "state"
    tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=state)
    (jar,) = (state / "drivers").rglob("base-2.jar")
    jar.write_bytes(jar_of(evil="x"))
    verified = tidegate("driver", "verify", state=state)
    assert verified.status == 1
    assert "fault  org.other:driver:1" in verified.out
    assert "org/other/base/2/base-2.jar: its content has changed" in verified.out
    report = tidegate("driver", "verify", "--json", state=state)
    assert report.status == 1 and report.json["ok"] is False
    assert tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=state).status == 0
    assert tidegate("driver", "verify", state=state).status == 0


def test_code_is_not_downloaded_without_a_person_once_there_are_rights(
    tmp_path: Path, served: MavenRepository
) -> None:
    state = tmp_path / "state"
    with operator_terminal() as terminal:
        made = tidegate(
            "token", "create", "x", "--scope", "readOnly", state=state, terminal=terminal
        )
    assert made.status == 0, made.err
    served.requests.clear()
    for words in (("fetch", DRIVER), ("fetch", "h2", "--repository", served.url)):
        refused = tidegate("driver", *words, *config(tmp_path), state=state)
        assert refused.status == 77 and "a person must agree on a terminal" in refused.err
    assert served.requests == [] and not (state / "drivers").exists()
    with operator_terminal() as terminal:
        fetched = tidegate(
            "driver", "fetch", DRIVER, *config(tmp_path), state=state, terminal=terminal
        )
    assert fetched.status == 0, fetched.err


def test_a_bundle_takes_drivers_to_another_machine(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    bundle = tmp_path / "drivers.zip"
    tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=here)
    written = tidegate("driver", "bundle", str(bundle), state=here)
    assert written.status == 0 and DRIVER in written.err
    imported = tidegate("driver", "import", str(bundle), state=there)
    assert (imported.status, imported.err) == (0, f"imported {DRIVER}\n")
    assert tidegate("driver", "verify", state=there).out == f"ok     {DRIVER}\n"
    events = tidegate("audit", "tail", "--json", state=there).out
    assert "driver.imported" in events


def test_mistakes_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for words, status, text in (
        (("fetch", "oracel"), 2, "Write groupId:artifactId:version"),
        (("fetch", "a:b:1"), 66, "The repository has no a/b/1/b-1.jar"),
        (("remove", "a:b:1"), 77, "a person must agree"),
        (("bundle", str(tmp_path / "x.zip")), 2, "tidegate driver fetch"),
        (("import", str(tmp_path / "x.zip")), 2, "Cannot read the bundle"),
    ):
        ended = tidegate("driver", *words, *config(tmp_path), state=state)
        assert (ended.status, text in ended.err) == (status, True), ended.err


@pytest.fixture
def h2(served: MavenRepository, tmp_path: Path) -> str:
    """The version of Debian's H2, which the repository has; `tmp_path/hr` is a database of it."""
    jdbc_drivers.driver_path("h2")
    if not (DEBIAN / "com/h2database/h2").is_dir():
        pytest.skip("needs Debian's H2 (the package libh2-java)")
    served.folder = DEBIAN
    (version,) = [each.name for each in (DEBIAN / "com/h2database/h2").glob("[0-9]*")]
    url = jdbc_drivers.new_database("h2", tmp_path / "shop", ('CREATE TABLE "items" ("id" INT)',))
    (tmp_path / "url").write_text(url)
    return version


def test_a_source_names_the_coordinate_of_its_driver(
    tmp_path: Path, served: MavenRepository, h2: str
) -> None:
    state = tmp_path / "state"
    url = (tmp_path / "url").read_text()
    missing = tidegate("source", "add", "hr", url, *config(tmp_path), state=state)
    assert missing.status == 69 and "run `tidegate driver fetch h2`" in missing.err
    coordinate = f"com.h2database:h2:{h2}"
    added = tidegate(
        *("source", "add", "hr", url, "--driver-coordinate", coordinate, *config(tmp_path)),
        state=state,
    )
    assert added.status == 0, added.err
    served.requests.clear()
    asked = tidegate("query", "hr", "SELECT 40 + 2 AS n", "--json", state=state)
    assert asked.json["rows"] == [[42]]
    assert served.requests == []
    # Another source of the same database needs no coordinate.
    again = tidegate("source", "add", "again", url, state=state)
    assert again.status == 0, again.err


def test_a_source_is_saved_anyway_with_the_coordinate_that_a_name_stands_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nowhere.json"
    path.write_text(json.dumps({"drivers": {"repository": "http://127.0.0.1:1/"}}))
    words = ("jdbc:h2:./hr", "--driver-coordinate", "h2", "--config", str(path))
    state = tmp_path / "state"
    refused = tidegate("source", "add", "hr", *words, state=state)
    assert refused.status == 69 and "127.0.0.1:1" in refused.err
    assert tidegate("source", "list", "--json", state=state).json == {"sources": []}
    saved = tidegate("source", "add", "hr", *words, "--anyway", state=state)
    assert saved.status == 0 and "it does not work now" in saved.err, saved.err
    shown = tidegate("source", "show", "hr", "--json", state=state)
    coordinate = known_database_of("jdbc:h2:").coordinate
    assert shown.json["options"] == [["driver_coordinate", coordinate]]


def test_a_source_in_the_settings_names_the_coordinate_of_its_driver(
    tmp_path: Path, served: MavenRepository, h2: str
) -> None:
    settings = {
        "drivers": {"repository": served.url},
        "sources": [
            {
                "name": "hr",
                "url": (tmp_path / "url").read_text(),
                "options": {"driver_coordinate": f"com.h2database:h2:{h2}"},
            }
        ],
    }
    path = tmp_path / "server.json"
    path.write_text(json.dumps(settings))
    state = tmp_path / "state"
    asked = tidegate(
        "query", "hr", "SELECT 40 + 2 AS n", "--json", "--config", str(path), state=state
    )
    assert asked.status == 0 and asked.json["rows"] == [[42]], asked.err
    settings["sources"][0]["options"] = {"driver_coordinate": DRIVER}  # type: ignore[index]
    path.write_text(json.dumps(settings))
    refused = tidegate("query", "hr", "SELECT 1", "--config", str(path), state=state)
    assert refused.status == 77
    assert f"tidegate driver fetch {DRIVER}" in refused.err
    assert not (state / "drivers/org/other").exists()


def test_the_repositorys_password_may_be_printed_by_a_program(
    tmp_path: Path, served: MavenRepository
) -> None:
    printed = tmp_path / "printed"
    program = ["sh", "-c", f"touch {printed}; echo hunter2"]
    login = {"user": "ann", "password": f"${{COMMAND:{json.dumps(program)}}}"}
    settings = {"drivers": {"repository": served.url, **login}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    fetched = tidegate("driver", "fetch", DRIVER, *config(tmp_path), state=tmp_path / "state")
    assert fetched.status == 0, fetched.err
    assert printed.exists() and "hunter2" not in fetched.err
