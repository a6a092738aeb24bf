"""Products: a package of its own is found by its entry point, and the gate starts without any."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidegate

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS / "example_package"
SOURCE = Path(tidegate.__file__).parent
PRODUCTS = sorted(each.parent.name for each in SOURCE.glob("products/*/product.py"))
CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def run(*words: str, path: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run `tidegate` in a process that finds packages in `path`, too."""
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *words],
        env=os.environ | {"PYTHONPATH": str(path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )


def query(sql: str, url: str, directory: Path, *, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a statement on a source that a settings file names."""
    settings = directory / "tidegate.toml"
    settings.write_text(f'[[sources]]\nname = "books"\nurl = "{url}"\n')
    words = ("--config", str(settings), "--state", str(directory / "state"), "--json")
    return run("query", "books", sql, *words, path=path)


def call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def converse(*words: str, messages: list[dict[str, Any]], state: Path) -> dict[int, dict[str, Any]]:
    """What `tidegate serve` answers on stdio, with the package, by the ids of the messages."""
    opening: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    lines = "".join(json.dumps(each) + "\n" for each in (*opening, *messages))
    served = run("serve", *words, "--state", str(state), path=PACKAGE, input=lines)
    return {each["id"]: each["result"] for each in map(json.loads, served.stdout.splitlines())}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger that the package's own command made, with three entries."""
    file = tmp_path / "books.db"
    made = run("ledger", "new", str(file), path=PACKAGE)
    assert (made.returncode, made.stdout) == (0, f"made {file}\n"), made.stderr
    with sqlite3.connect(file) as connection:
        entries = [("rent", -5), ("rent", -7), ("wages", 100)]
        connection.executemany("INSERT INTO entries VALUES (?, ?)", entries)
    connection.close()
    return file


def test_the_engine_of_a_package_answers_by_its_own_dialect(ledger: Path, tmp_path: Path) -> None:
    def ask(sql: str) -> subprocess.CompletedProcess[str]:
        return query(sql, f"ledger:///{ledger}", tmp_path, path=PACKAGE)

    asked = ask("SELECT sum(cents) AS cents FROM entries")
    assert json.loads(asked.stdout)["rows"] == [[88]], asked.stderr
    refused = ask("SELECT random()")
    assert refused.returncode != 0 and "random" in refused.stderr.lower()
    assert ask("DELETE FROM entries").returncode != 0
    with sqlite3.connect(ledger) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    connection.close()


def test_the_tools_of_a_package_go_through_the_gate(ledger: Path, tmp_path: Path) -> None:
    asked = [call(3, "list_accounts", {}), call(4, "balance", {"account": "rent"})]
    messages = [{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, *asked]
    state = tmp_path / "state"
    words = ("--surface", "ledger", "--source", f"books=ledger:///{ledger}")
    found = converse(*words, messages=messages, state=state)
    assert [tool["name"] for tool in found[2]["tools"]] == ["list_accounts", "balance"]
    assert found[3]["content"][0]["text"] == '[["rent"],["wages"]]'
    assert found[4]["content"][0]["text"] == "[[-12]]"
    record = run("audit", "tail", "--json", "--state", str(state), path=PACKAGE).stdout
    assert "sum(cents)" in record and "list_accounts" in record


def test_the_settings_of_a_package_are_read_and_checked_as_those_of_the_gate(
    ledger: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    words = ("--surface", "ledger", "--source", f"books=ledger:///{ledger}")
    words = (*words, "--config", str(settings))

    def write(text: str) -> None:
        settings.write_text(text)
        settings.chmod(0o600)

    write('[ledger]\ncurrency = "EUR"\n')
    asked = [call(2, "balance", {"account": "rent"})]
    found = converse(*words, messages=asked, state=tmp_path / "state")
    assert found[2]["content"][0]["text"] == '[[-12,"EUR"]]'
    for text, refusal in (
        ('[ledger]\ncurrency = "euro"\n', "`ledger.currency` is `euro`, which is no currency"),
        ('[ledger]\ncurency = "EUR"\n', "There is no setting `ledger.curency`"),
        ("[ledger]\ncurrency = 5\n", "`ledger.currency`: Expected `str`, got `int`"),
    ):
        write(text)
        checked = run("config", "check", "--config", str(settings), path=PACKAGE)
        assert checked.returncode == 78 and refusal in checked.stderr, checked.stderr
    without = run("config", "check", "--config", str(settings), path=TESTS)
    assert "There is no setting `ledger`" in without.stderr


def test_a_step_of_a_package_is_passed_by_calls_on_its_own_engine(
    ledger: Path, tmp_path: Path
) -> None:
    def entries() -> list[tuple[int]]:
        with sqlite3.connect(ledger) as connection:
            found = connection.execute("SELECT cents FROM entries ORDER BY rowid").fetchall()
        connection.close()
        return found

    def change(scheme: str, *statements: str) -> list[str]:
        calls = [
            call(number, "query", {"sql": sql}) for number, sql in enumerate(statements, start=2)
        ]
        words = ("--surface", "core", "--source", f"books={scheme}:///{ledger}", "--allow-writes")
        answers = converse(*words, messages=calls, state=tmp_path / scheme)
        return [answers[number]["content"][0]["text"] for number in sorted(answers)[1:]]

    update = "UPDATE entries SET cents = 0 WHERE account = 'rent'"
    refused, added = change("ledger", update, "INSERT INTO entries VALUES ('rent', -9)")
    assert "Entries of a ledger stay as they are" in refused
    assert entries() == [(-5,), (-7,), (100,), (-9,)], added
    change("sqlite", update)
    assert entries() == [(0,), (0,), (100,), (0,)], "the step is none of this source's"


def test_a_step_before_one_that_is_not_there_refuses_every_call(
    ledger: Path, tmp_path: Path
) -> None:
    shutil.copytree(PACKAGE, copy := tmp_path / "changed")
    product = copy / "tidegate_ledger" / "product.py"
    product.write_text(product.read_text().replace('{"approve":', '{"nowhere":'))
    asked = query("SELECT 1", f"ledger:///{ledger}", tmp_path, path=copy)
    assert asked.returncode != 0
    assert "The product `ledger` has a step before `nowhere`" in asked.stderr


SETTINGS = """
from typing import ClassVar
from tidegate.config.sections import Section
class Own(Section, frozen=True, forbid_unknown_fields=True):
    NAME: ClassVar[str] = "own"
    number: int = 0
class Foreign(Section, frozen=True):
    NAME: ClassVar[str] = "audit"
"""


def package(directory: Path, product: str, **modules: str) -> Path:
    """A folder with an installed package `other` whose product has these entries."""
    (directory / "other").mkdir(parents=True)
    entries = f"from tidegate.product import *\nPRODUCT = Product('other', {product})\n"
    for name, text in {"__init__": "", "product": entries, "settings": SETTINGS, **modules}.items():
        (directory / "other" / f"{name}.py").write_text(text)
    about = directory / "other-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    point = "[tidegate.products]\nother = other.product:PRODUCT\n"
    (about / "entry_points.txt").write_text(point)
    return directory


ENGINE = "EngineEntry('{}', 'sqlite', 'tidegate.engines.sqlite', 'SqliteEngine')"
OWN = "settings={'own': 'other.settings:Own', "


@pytest.mark.needs("cloud", "jdbc", "mysql")
@pytest.mark.parametrize(
    ("product", "settings", "taken"),
    [
        (OWN + "'audit': 'other.settings:Foreign'}", "[own]\n[audit]\n", "section `audit`"),
        (OWN + "'cloud': 'other.settings:Own'}", "[own]\n", "section `cloud`"),
        (f"engines={{'other': {ENGINE.format('sqlite')}}}", "other:///x", "engine `sqlite`"),
        (f"engines={{'other': {ENGINE.format('jdbc')}}}", "other:///x", "engine `jdbc`"),
        (
            f"engines={{'other': {ENGINE.format('other')}, 'mysql': {ENGINE.format('other')}}}",
            "other:///x",
            "engine's `mysql`",
        ),
        (
            f"engines={{'other': {ENGINE.format('other')}, 'jdbc:h2:': {ENGINE.format('other')}}}",
            "other:///x",
            "engine's `jdbc:h2:`",
        ),
        (
            "surfaces={'core': SurfaceEntry('other.surface')}",
            "surfaces = ['own']",
            "surface `core`",
        ),
    ],
)
def test_a_package_takes_the_place_of_nothing_that_is_here(
    product: str, settings: str, taken: str, tmp_path: Path
) -> None:
    path = package(tmp_path / "path", product)
    file = tmp_path / "tidegate.toml"
    url = settings if settings.startswith("other:") else "sqlite://"
    text = "" if settings.startswith("other:") else settings
    file.write_text(f'{text}\n[[sources]]\nname = "x"\nurl = "{url}"\n')
    file.chmod(0o600)
    words = ("--config", str(file), "--state", str(tmp_path / "state"))
    asked = run("query", "x", "SELECT 1", *words, path=path)
    served = run("serve", *words, path=path, input="")
    for done in (asked, served):
        if "surface" not in taken or done is served:
            assert f"The product `other` of an installed package cannot be used: its {taken}" in (
                done.stderr
            )


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("dialect", ["mysql", "oracle", "tsql"])
def test_a_package_defines_no_dialect_of_an_engine_that_is_here(
    dialect: str, tmp_path: Path
) -> None:
    dialects = f"dialects={{'{dialect}': 'other.dialect', 'other': 'other.dialect'}}"
    module = "from msgspec import structs\nfrom tidegate.sql.dialects import sqlite\n"
    module += "DIALECT = structs.replace(sqlite.DIALECT, name='other')\n"
    path = package(tmp_path / "path", dialects, dialect=module)
    own = run("judge", "--dialect", dialect, "SELECT changes()", path=path)
    assert own.stdout == run("judge", "--dialect", dialect, "SELECT changes()", path=TESTS).stdout
    code = "from tidegate.sql.dialects import find; find('other')"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert f"its dialect `{dialect}` is taken" in other.stderr


def test_a_package_has_no_command_of_the_kernel(tmp_path: Path) -> None:
    commands = "commands={'audit': CommandEntry('other.settings:Own', 'after')}"
    path = package(tmp_path / "path", commands)
    shown = run("--help-all", path=path)
    assert shown.returncode == 78 and "its command `audit` is taken" in shown.stderr
    assert run("audit", "--help", path=path).returncode == 0


def test_a_section_that_nothing_would_read_is_refused(tmp_path: Path) -> None:
    path = package(tmp_path / "path", "settings={'mine': 'other.settings:Own'}")
    settings = tmp_path / "settings.toml"
    settings.write_text("[mine]\nnumber = 5\n")
    settings.chmod(0o600)
    checked = run("config", "check", "--config", str(settings), path=path)
    assert checked.returncode == 78
    assert "The section `mine` belongs to a struct for `own`" in checked.stderr


def test_the_command_of_a_package_stands_in_the_help() -> None:
    assert "ledger      make an empty ledger" in run("--help-all", path=PACKAGE).stdout
    assert "ledger" not in run("--help-all", path=TESTS).stdout


def test_without_the_package_its_url_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    asked = query("SELECT 1", "ledger:///x.db", tmp_path, path=TESTS)
    assert "No engine opens `ledger://`" in asked.stderr and "sqlite://" in asked.stderr


def test_a_package_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    point = "[tidegate.products]\nbroken = no_such_module:PRODUCT\n"
    (about / "entry_points.txt").write_text(point)
    asked = query("SELECT 1", "broken://x", tmp_path, path=tmp_path)
    assert "The product `broken` of an installed package cannot be used" in asked.stderr
    own = query("SELECT 1", "sqlite://", tmp_path, path=tmp_path)
    assert own.returncode == 0, "what needs no package is not hindered by one"


def test_the_engine_of_a_package_holds_the_contract_of_engines() -> None:
    """A part of the suite, with what is most its own: results, refusals, metadata."""
    suite = [f"contract/engines/test_{each}.py" for each in ("results", "refusals", "metadata")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", "ledger", *suite],
        cwd=TESTS,
        env=os.environ
        | {"PYTHONPATH": str(PACKAGE), "TIDEGATE_ENGINE_CASE": "tidegate_ledger_case:CASE"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout and "failed" not in done.stdout


def package_without(product: str, directory: Path) -> Path:
    """A folder in which the package is without a product: by links to all the rest of it."""
    for folder, left_out in ((SOURCE, "products"), (SOURCE / "products", product)):
        target = directory / "tidegate" / folder.relative_to(SOURCE)
        target.mkdir(parents=True)
        for each in folder.iterdir():
            if each.name not in (left_out, "__pycache__"):
                (target / each.name).symlink_to(each)
    return directory


def test_without_a_product_the_gate_starts_and_all_others_do_what_they_do(tmp_path: Path) -> None:
    folders = [package_without(name, tmp_path / name) for name in PRODUCTS]
    used = subprocess.run(
        [sys.executable, "-m", "support.every_product", *map(str, folders)],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert used.returncode == 0, used.stderr[-3000:]
    for name, folder in zip(PRODUCTS, folders, strict=True):
        others = [each for each in PRODUCTS if each != name]
        assert json.loads((folder / "products.json").read_text()) == others
