"""The safety core: the modules whose mutants must be killed, by package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

_CORE = {
    "policy": ("policy/*.py",),
    "sql": ("sql/*.py", "sql/dialects/*.py", "sql/masking/*.py"),
    "approvals": ("approvals/*.py",),
    "secrets": ("secrets.py",),
    "engines": (
        "engines/*/inspect.py",
        "engines/postgres/catalog.py",
        "engines/common/permit_checks.py",
        "engines/common/roles.py",
        "engines/common/dry_run.py",
    ),
    "gateway": (
        "gateway/gateway.py",
        "gateway/context.py",
        "gateway/decision.py",
        "gateway/approval.py",
        "gateway/preview.py",
        "gateway/masking.py",
        "gateway/metadata.py",
        "gateway/recorder.py",
        "gateway/execution.py",
    ),
    "audit": (
        "audit/chain.py",
        "audit/checkpoints.py",
        "audit/event.py",
        "audit/segment.py",
        "audit/segment_check.py",
        "audit/tail.py",
        "audit/verify.py",
    ),
}

TESTS = (
    "tests/unit",
    "tests/properties",
    "tests/security",
    "tests/contract",
    "tests/faults/audit",
)
"""Where tests may kill. What runs in other processes (tests/cli, tests/wire) cannot be mutated."""


def modules() -> dict[Path, str]:
    """Every module of the core and its package."""
    found: dict[Path, str] = {}
    for package, patterns in _CORE.items():
        for pattern in patterns:
            paths = sorted((SOURCE / "tidegate").glob(pattern))
            if not paths:
                raise SystemExit(f"tests/mutation/core.py names {pattern}, which does not exist")
            found.update(dict.fromkeys(paths, package))
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
