"""How the findings of checks are shown."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.cli.checks.finding import Finding
from tidegate.cli.terminal import color, print_status, show, show_json

FAULTY = 1
"""The exit status if a fault was found."""
_COLORS = {"ok": "32", "note": "33", "fault": "31"}
_CHECK_WIDTH = 16


class Report:
    """The findings. They are shown as they come, or as one JSON object at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._findings: list[Finding] = []

    @property
    def faults(self) -> int:
        return sum(finding.state == "fault" for finding in self._findings)

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._findings.append(finding)
            if self._as_json:
                continue
            state = color(f"{finding.state:<6}", _COLORS[finding.state])
            show(f"{state} {finding.check:<{_CHECK_WIDTH}} {finding.text}")
            if finding.to_do:
                show(f"{'':<{_CHECK_WIDTH + 7}} to do: {finding.to_do}")

    def end(self) -> None:
        if self._as_json:
            checks = [finding._asdict() for finding in self._findings]
            show_json({"ok": not self.faults, "checks": checks})
            return
        notes = sum(finding.state == "note" for finding in self._findings)
        print_status(f"{_counted(self.faults, 'fault')}, {_counted(notes, 'note')}")


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
