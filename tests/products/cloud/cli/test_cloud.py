"""`tidegate cloud check` counts what is in a registry folder, and names each fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from products.cloud.support.cloud_registry import STOCK, write_registry
from support.cloud_surface import settings_of
from tidegate.cli.main import main


def test_check_counts_what_is_there_and_what_is_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_registry(tmp_path)
    assert main(["cloud", "check", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "providers": 1, "services": 1, "resources": 2, "methods": 7, "absent": 1, "errors": 0,
        "faults": [],
    }  # fmt: skip
    assert main(["cloud", "check", str(folder / "src")]) == 0
    assert "services 1  resources 2  methods 7  absent 1  errors 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("{{ toJson . }}", "{{ toJson . ", "method list: its template is not understood"),
        (
            "golang_template_json_v0.3.0",
            "lua_v1",
            "method list: the transform `lua_v1` is not known",
        ),
        (
            """'{"kind": "x"}'""",
            """'{"kind": '""",
            'method create: the body `{"kind": ` is no JSON',
        ),
        ("FROM shop.stock.items", "FROM", "view: its SQL is not understood"),
        ("openapi: 3.1.0", "openapi: [", "stock.yaml, line"),
        ("algorithm: naive", "algorithm: clever", "an algorithm that is not known: clever"),
    ],
)
def test_each_fault_is_named_and_the_rest_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, problem: str
) -> None:
    assert old in STOCK
    folder = write_registry(tmp_path, STOCK.replace(old, new, 1))
    assert main(["cloud", "check", str(folder), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["errors"] == len(report["faults"]) == 1
    assert problem in report["faults"][0]["problem"]
    assert (report["providers"], report["absent"]) == (1, 1)


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_without_documents_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    folder = tmp_path / "registry"
    if there:
        folder.mkdir()
    assert main(["cloud", "check", str(folder)]) != 0
    assert str(folder) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "status"),
    [("desk.tickets.tickets", 0), ("apis:desk.tickets.*", 0), ("desk.*", 0), ("desk.tickets", 0),
     ("desk.tickets.tickts", 1), ("desk.ticket.*", 1), ("des.*", 1), ("desk.tickets.*.id", 1)],
)  # fmt: skip
def test_a_token_may_be_for_a_provider_a_service_or_a_resource(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, status: int
) -> None:
    config = json.dumps(settings_of(tmp_path))
    words = ["token", "create", "bot", "--scope", "readOnly", "--source", "apis"]
    words += ["--table", table, "--config", config]
    assert (main(words) != 0) == status
    shown = capsys.readouterr()
    assert ("tg_" in shown.out) != status
    if status:
        assert "no table" in shown.err or "cannot be the name of a table" in shown.err
