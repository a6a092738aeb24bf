"""The alert rules, by promtool: each fires for its fault alone, and none where all is well."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.documents import ROOT
from tidegate.errors import Code, TidegateError
from tidegate.gateway.fault_log import FaultLog

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
PAGE = ROOT / "docs" / "howto" / "on-call.md"
MINUTES = 60
GATE = 'job="tidegate",instance="gate:9464"'
pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")


def series(name: str, labels: str = "") -> str:
    return f"{name}{{{GATE}{',' if labels else ''}{labels}}}"


def always(value: float) -> str:
    return f"{value}x{MINUTES}"


def rate(a_minute: float) -> str:
    return f"0+{a_minute}x{MINUTES}"


def late(before: float, after: float, minutes: int = 12) -> str:
    """So many a minute, and so many in the last minutes."""
    begin = MINUTES - minutes
    return f"0+{before}x{begin} {before * begin + after}+{after}x{minutes}"


OK = 'surface="core",tool="query",outcome="ok",code=""'
SHOP = 'source="shop",outcome="ok",code=""'
POOLED, SIEM, DAILY = 'source="shop"', 'destination="siem"', 'measure="calls",window="day"'
BUDGET, LEASE = "tidegate_budget_refusals_total", "tidegate_source_lease"
STALL = "tidegate_loop_stall_seconds_bucket"
WELL = {
    series("up"): always(1),
    **{
        series("tidegate_failing", f'part="{part}"'): always(0)
        for part in ("audit", "descriptors", "server", "state")
    },
    series("tidegate_calls_total", OK): rate(300),
    series("tidegate_source_calls_total", SHOP): rate(300),
    **{
        series("tidegate_call_duration_seconds_bucket", f'source="shop",le="{most}"'): rate(300)
        for most in ("0.1", "10.0", "60.0", "+Inf")
    },
    series(STALL, 'le="1.0"'): rate(240),
    series(STALL, 'le="+Inf"'): rate(240),
    series("tidegate_source_statements_waiting", 'source="shop"'): always(0),
    series("tidegate_events_total", 'name="login.failed"'): rate(1),
    series("tidegate_approvals_waiting"): always(0),
    series("tidegate_degraded"): always(0),
    series("tidegate_late_events_total"): always(0),
    series("tidegate_audit_checkpoint_age_seconds"): always(5),
    series(BUDGET, DAILY): rate(1),
    series("tidegate_source_pool_wait_seconds_total", POOLED): rate(6),
    series(f"{LEASE}_renewal_timestamp_seconds", POOLED): always((MINUTES + 5) * 60),
    series(f"{LEASE}_expiry_timestamp_seconds", POOLED): always((MINUTES + 35) * 60),
    series("tidegate_ship_lag_seconds", SIEM): always(20),
    series("tidegate_certificate_expiry_timestamp_seconds"): always(90 * 86_400),
    series("process_resident_memory_bytes"): always(3e8),
    series("process_open_fds"): always(80),
    series("process_max_fds"): always(1024),
}
FAULTS: dict[str, dict[str, str]] = {
    "TidegateDown": {series("up"): always(0)},
    "TidegateStateNotWritten": {series("tidegate_failing", 'part="state"'): always(1)},
    "TidegateRecordNotWritten": {series("tidegate_failing", 'part="audit"'): always(1)},
    "TidegateOutOfFiles": {series("process_open_fds"): always(1_000)},
    "TidegateStallsCallers": {series(STALL, 'le="+Inf"'): rate(241)},
    "TidegateFaults": {
        series("tidegate_calls_total", 'outcome="failed",code="internal.fault"'): rate(0.5)
    },
    "TidegateSourceFails": {
        series(
            "tidegate_source_calls_total",
            'source="shop",outcome="failed",code="source.unreachable"',
        ): rate(100)
    },
    "TidegateSourceFull": {
        series("tidegate_source_statements_waiting", 'source="shop"'): always(2)
    },
    "TidegatePoolFull": {series("tidegate_source_pool_wait_seconds_total", POOLED): rate(120)},
    "TidegateLeaseNotRenewed": {
        series(f"{LEASE}_renewal_timestamp_seconds", POOLED): always((MINUTES - 10) * 60),
        series(f"{LEASE}_expiry_timestamp_seconds", POOLED): always((MINUTES + 20) * 60),
    },
    "TidegateSlow": {
        series("tidegate_call_duration_seconds_bucket", 'source="shop",le="10.0"'): rate(200),
        series("tidegate_call_duration_seconds_bucket", 'source="shop",le="0.1"'): rate(100),
    },
    "TidegateSurge": {series("tidegate_calls_total", OK): late(300, 6_000)},
    "TidegateRefusals": {
        series("tidegate_calls_total", 'outcome="denied",code="policy.read_only"'): rate(90)
    },
    "TidegateBudgetUsedUp": {series(BUDGET, DAILY): rate(20)},
    "TidegateLogins": {series("tidegate_events_total", 'name="login.failed"'): rate(60)},
    "TidegateNobodyAnswers": {series("tidegate_approvals_waiting"): always(1)},
    "TidegateDegraded": {series("tidegate_degraded"): always(2)},
    "TidegateRecordUnsigned": {series("tidegate_audit_checkpoint_age_seconds"): always(900)},
    "TidegateRecordLate": {series("tidegate_late_events_total"): rate(1)},
    "TidegateShippingLate": {series("tidegate_ship_lag_seconds", SIEM): always(3_600)},
    "TidegateCertificateEnds": {
        series("tidegate_certificate_expiry_timestamp_seconds"): always(9 * 86_400)
    },
    "TidegateMemory": {series("process_resident_memory_bytes"): always(2e9)},
    "TidegateStopsForLong": {series("tidegate_failing", 'part="server"'): always(1)},
}
QUIET: dict[str, dict[str, str]] = {
    "nothing is wrong": {},
    "an idle gate has nothing to sign": {
        series("tidegate_audit_checkpoint_age_seconds"): always(9_000),
        series("tidegate_calls_total", OK): always(1_000),
    },
    "a busy day begins": {series("tidegate_calls_total", OK): late(300, 1_200)},
    "a gate is busy from its start": {
        series("tidegate_calls_total", OK): f"_x{MINUTES - 30} 0+6000x30"
    },
    "an account is about to be replaced": {
        series(f"{LEASE}_renewal_timestamp_seconds", POOLED): always((MINUTES - 1) * 60),
        series(f"{LEASE}_expiry_timestamp_seconds", POOLED): always((MINUTES + 29) * 60),
    },
    "a destination is away for a while": {
        series("tidegate_ship_lag_seconds", SIEM): f"0x{MINUTES - 10} 0+60x10"
    },
    "an agent names sources and tables that do not exist": {
        series(
            "tidegate_source_calls_total", f'source="other",outcome="failed",code="{code}"'
        ): rate(30)
        for code in ("source.unknown", "source.unknown_table", "source.not_connected")
    },
    "a gate drains": {series("tidegate_failing", 'part="server"'): f"0x{MINUTES - 5} 1x5"},
}


NOT_THE_CALLERS = ("source.unreachable", "secret.unavailable", "keyring.failed")
NOT_THE_CALLERS += ("driver.unresolved", "credential.refused", "provider.unreachable")


def alerts() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def scenario(changes: dict[str, str], firing: list[str]) -> dict[str, Any]:
    shown = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    return {
        "interval": "1m",
        "input_series": [{"series": n, "values": v} for n, v in {**WELL, **changes}.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{MINUTES}m",
                "exp_samples": shown,
            }
        ],
    }


def test_each_alert_fires_for_its_fault_and_for_nothing_else(tmp_path: Path) -> None:
    assert FAULTS.keys() == alerts().keys()
    file = tmp_path / "scenarios.yaml"
    scenarios = [scenario(changes, []) for changes in QUIET.values()]
    scenarios += [scenario(changes, [name]) for name, changes in FAULTS.items()]
    for code in NOT_THE_CALLERS:
        labels = f'source="shop",outcome="failed",code="{code}"'
        changes = {series("tidegate_source_calls_total", labels): rate(100)}
        scenarios.append(scenario(changes, ["TidegateSourceFails"]))
    given = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": scenarios}
    file.write_text(yaml.safe_dump(given))
    ran = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_makes_a_source_fail_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog()
    for code in (*NOT_THE_CALLERS, *NOT_THE_CALLERS, "source.unknown"):
        log.note(TidegateError(Code(code), "It is away"), "shop", "call-1")
    assert [record.getMessage() for record in caplog.records] == [
        f"source shop: {code}: It is away" for code in NOT_THE_CALLERS
    ]


def test_each_alert_leads_to_its_part_of_the_page() -> None:
    parts = re.findall(r"^### (\w+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert parts == list(alerts())
    for name, alert in alerts().items():
        assert alert["annotations"]["runbook"] == f"docs/howto/on-call.md#{name.lower()}"
        assert alert["labels"]["severity"] in ("page", "ticket")
