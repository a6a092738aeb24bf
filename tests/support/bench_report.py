"""Reports of the bench, of what one test has measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.report import render

_RUN: Mapping[str, Any] = {
    "date": "a day",
    "machine": "a machine",
    "versions": {},
    "loads": {},
    "failures": {},
    "rounds": 1,
}


def shown(workloads: Mapping[str, Any], **more: Any) -> str:
    """The report of these workloads; `more` is what else is known of the run."""
    return render({**_RUN, **more, "workloads": workloads})
