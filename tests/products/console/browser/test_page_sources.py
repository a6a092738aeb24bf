"""The files of the page: their types, their size, and what none of them does."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest

from external.install import node, node_modules
from products.console.support.console_site import PAGE
from tidegate.products.console.page_files import CHART
from tidegate.surfaces.apps.page import MODULES

FIRST_PAGES_BYTES = 60 * 1024
DATA_BYTES = 160_000
"""All that a browser without any of it loads for a table, or a statement and its result."""
EDITS_BYTES = 34_000
"""What the first key that edits a row loads in addition."""
LAZY = {
    *("activity.js", "access.js", "chart_view.js", "data.js", "find_text.js", "now.js"),
    "row_edits.js",
    *("diagram.js", "diagram_choose.js", "diagram_export.js", "diagram_panel.js"),
    *("diagram_worker.js", "diagram_fit.js", "server.js", "terminal.js"),
    *("saved_form.js", "saved_list.js", "saved_versions.js", "table_form.js"),
    "import.js",
}
VENDORED = {"dagre.esm.js", "dagre.esm.d.ts", "dagre.LICENSE.txt"}
DIAGRAM_BYTES = 35 * 1024
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|eval\(|new Function"
    r"|DOMParser|createContextualFragment|sessionStorage|setHTML"
)
FILES = sorted(
    [CHART, *(path for path in PAGE.iterdir() if path.is_file() and path.name not in VENDORED)]
)
CHART_BYTES = 15 * 1024
APP = MODULES[-1]


def imported(name: str) -> set[str]:
    """A module and all that it loads at once."""
    text = (CHART if name == CHART.name else PAGE / name).read_text()
    found = {name}
    for other in re.findall(r'^(?:import|export)[^;]*? from "\./([\w.]+)";', text, re.MULTILINE):
        found |= imported(other)
    return found


def test_the_modules_have_the_types_that_they_say(tmp_path: Path) -> None:
    options = {
        "allowJs": True, "checkJs": True, "strict": True, "noEmit": True, "types": [],
        "target": "es2022", "module": "es2022", "moduleResolution": "bundler",
        "lib": ["es2024", "dom", "dom.iterable"],
        "rootDirs": [str(PAGE), str(CHART.parent), str(APP.parent)],
    }  # fmt: skip
    config = tmp_path / "tsconfig.json"
    config.write_text(
        json.dumps(
            {
                "compilerOptions": options,
                "include": [f"{PAGE}/*.js", str(CHART), str(APP)],
                "exclude": [f"{PAGE}/dagre.esm.js"],
            }
        )
    )
    compiler = node_modules() / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [node(), compiler, "-p", config], capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_what_an_error_says_is_shown_with_its_code_as_code() -> None:
    lines = [line for path in PAGE.glob("*.js") for line in path.read_text().splitlines()]
    alerts = [line for line in lines if 'role: "alert"' in line]
    assert len(alerts) > 20
    assert [line for line in alerts if "visible(" in line] == []


def test_sign_in_and_inbox_are_small() -> None:
    names = {"index.html", "style.css", "pages.css", "icon.svg"} | imported("app.js")
    assert not names & LAZY
    sizes = {name: len(gzip.compress((PAGE / name).read_bytes(), 9)) for name in names}
    assert sum(sizes.values()) <= FIRST_PAGES_BYTES, sizes


def test_data_is_small_and_what_edits_rows_is_loaded_apart() -> None:
    first = {"index.html", "style.css", "pages.css", "icon.svg"} | imported("app.js")
    data = {"data.css", "query.css"} | imported("data.js")
    assert not (first | data) & (LAZY - {"data.js"})
    edits = {"edit.css"} | imported("row_edits.js")
    for names, most in ((first | data, DATA_BYTES), (edits - first - data, EDITS_BYTES)):
        sizes = {name: len(gzip.compress((PAGE / name).read_bytes(), 9)) for name in names}
        assert sum(sizes.values()) <= most, sizes


def test_a_diagram_is_small_with_all_that_lays_it_out() -> None:
    names = imported("diagram.js") - imported("data.js") - imported("app.js")
    names |= {*imported("diagram_worker.js"), "diagram.css"}
    sizes = {name: len(gzip.compress((PAGE / name).read_bytes(), 9)) for name in names}
    assert sum(sizes.values()) <= DIAGRAM_BYTES, sizes


def test_what_is_vendored_is_as_it_was_published() -> None:
    package = node_modules() / "@dagrejs" / "dagre"
    assert json.loads((package / "package.json").read_text())["version"] == "3.1.3"
    for name, original in (("dagre.esm.js", "dist/dagre.esm.js"), ("dagre.LICENSE.txt", "LICENSE")):
        assert (PAGE / name).read_bytes() == (package / original).read_bytes()
    notice = (PAGE.parents[4] / "NOTICE").read_text()
    assert "dagre" in notice and "dagre.LICENSE.txt" in notice


def test_a_chart_is_small_and_its_module_imports_nothing() -> None:
    names = [CHART, *(PAGE / name for name in ("chart_view.js", "chart_form.js", "chart.css"))]
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in names}
    assert sum(sizes.values()) <= CHART_BYTES, sizes
    assert imported(CHART.name) == {CHART.name}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_makes_no_markup_of_text_and_names_nothing_outside(path: Path) -> None:
    text = path.read_text()
    # The uses of it are a choice of look and keys, in `choice`, and the key of the browser.
    assert text.count("localStorage") == {"state.js": 2, "api.js": 3}.get(path.name, 0)
    names = set(SINKS.findall(text)) - ({"srcdoc"} if path.name == "dom.js" else set())
    assert not names
    addresses = re.findall(r"https?://[^\s\"'`]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}


def test_the_index_has_no_script_and_no_style_of_its_own() -> None:
    text = (PAGE / "index.html").read_text()
    script = 'type="module" src="/console/assets/{{build}}/app.js"></script>'
    assert [each for each in text.split("<script ")[1:] if not each.startswith(script)] == []
    assert text.count("<script") == 1
    assert "<style" not in text
    assert re.findall(r"\s(?:on\w+|style)=", text) == []


def test_every_module_is_reached() -> None:
    reached = imported("app.js") | {each for name in LAZY for each in imported(name)}
    modules = {path.name for path in FILES if path.suffix == ".js"} - VENDORED
    reached -= VENDORED
    assert modules - reached == {
        "contract.js",
        "access_contract.js",
        "chart_contract.js",
        "data_contract.js",
        "diagram_contract.js",
        "edit_contract.js",
        "query_contract.js",
        "source_contract.js",
        "form_contract.js",
        "import_contract.js",
        "server_contract.js",
        "saved_contract.js",
    }
