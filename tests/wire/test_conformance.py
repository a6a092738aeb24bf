"""The official conformance suite against the fixture server, with both HTTP parsers.

The suite reports passes against a dead port, so a health check comes first, its exit status is
trusted before its words, and the number of checks is compared with what a live server brings.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from external.install import node, node_environment, node_modules
from support.eventually import HANG_S
from wire.served import everything

SUITE = "@modelcontextprotocol/conformance"
TASKS = "tasks-"
OPTIONAL = (TASKS, "sep-2640-skills-")
"""Scenarios of extensions, which the suite never scores: those of tasks have a test of their own,
and the server has no others."""


class Run(NamedTuple):
    """One run of the suite: what to run, and the scenarios and checks that it has at least."""

    name: str
    options: tuple[str, ...]
    scenarios: int
    checks: int


RUNS = (
    Run("required 2025-11-25", ("--requirements", "2025-11-25"), 30, 80),
    Run("required 2026-07-28", ("--requirements", "2026-07-28"), 37, 140),
    Run("all of 2025-03-26", ("--suite", "all", "--spec-version", "2025-03-26"), 1, 3),
    Run("all of 2025-06-18", ("--suite", "all", "--spec-version", "2025-06-18"), 27, 55),
    Run("all of 2025-11-25", ("--suite", "all", "--spec-version", "2025-11-25"), 33, 80),
    Run("all of 2026-07-28", ("--suite", "all", "--spec-version", "2026-07-28"), 40, 140),
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name.replace(" ", "-"))
def test_the_conformance_suite_passes(run: Run, tmp_path: Path) -> None:
    server = everything()
    try:
        status, said = _run_suite(run.options, server.port, tmp_path)
    finally:
        server.close()
    checks = {
        scenario: found
        for scenario, found in _checks_of(tmp_path).items()
        if not scenario.startswith(OPTIONAL)
    }
    failed = _failed(checks)
    assert not failed, failed
    assert status == 0, said[-3000:]
    assert len(checks) >= run.scenarios
    counted = [check for found in checks.values() for check in found if check["status"] != "INFO"]
    assert len(counted) >= run.checks
    assert any(check["id"] == "wire-schema-valid" for check in counted) or run.scenarios == 1
    assert not [check for check in counted if check.get("details", {}).get("untestable")]


TASK_SCENARIOS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
"""All but `tasks-status-notifications`, which checks nothing at this version of the suite."""


@pytest.mark.parametrize("scenario", TASK_SCENARIOS)
def test_the_conformance_suite_passes_for_tasks(scenario: str, tmp_path: Path) -> None:
    server = everything()
    try:
        status, said = _run_suite(("--scenario", scenario), server.port, tmp_path)
    finally:
        server.close()
    checks = _checks_of(tmp_path)
    assert list(checks) == [scenario]
    assert not _failed(checks), _failed(checks)
    assert status == 0, said[-3000:]
    assert any(check["status"] == "SUCCESS" for check in checks[scenario])


def _run_suite(options: tuple[str, ...], port: int, out: Path) -> tuple[int, str]:
    script = node_modules() / SUITE / "dist" / "index.js"
    url = f"http://localhost:{port}/mcp"
    done = subprocess.run(
        [str(node()), str(script), "server", "--url", url, *options, "-o", str(out)],
        env=node_environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _checks_of(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Scenario -> its checks, from the folders `server-SCENARIO-TIMESTAMP`."""
    return {
        file.parent.name.removeprefix("server-")[: -len("-2026-01-01T00-00-00-000Z")]: json.loads(
            file.read_text()
        )
        for file in sorted(out.glob("*/checks.json"))
    }


def _failed(checks: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Scenarios with a check that failed or warned, and what it said."""
    return {
        scenario: bad
        for scenario, found in checks.items()
        if (
            bad := [
                f"{check['status']} {check['id']}: {check.get('errorMessage')}"
                for check in found
                if check["status"] in ("FAILURE", "WARNING")
            ]
        )
    }
