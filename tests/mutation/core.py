"""The safety core: the modules whose mutants must be killed, by package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

_CORE = {
    "policy": ("policy/*.py",),
    "sql": (
        "sql/*.py",
        "sql/dialects/*.py",
        "sql/masking/*.py",
        "products/*/dialect.py",
        "products/*/dialects/*.py",
        "products/*/reserved_words.py",
        "products/console/statement_parts.py",
    ),
    "approvals": ("approvals/*.py",),
    "secrets": ("secrets/redaction.py", "secrets/references.py", "secrets/url_logins.py"),
    "engines": (
        "engines/*/inspect.py",
        "products/*/engine/inspect.py",
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

_KINDS = ("contract", "engine", "properties", "security", "surface", "undo", "unit")
TESTS = (
    "tests/unit",
    "tests/properties",
    "tests/security",
    "tests/contract",
    "tests/faults/audit",
    *(
        str(folder.relative_to(ROOT))
        for kind in _KINDS
        for folder in sorted(ROOT.glob(f"tests/products/*/{kind}"))
        if folder.parent.name != "pgwire" or kind == "unit"
    ),
)
"""Where tests may kill. What runs in other processes (tests/cli, tests/wire and their kinds in
products) cannot be mutated."""


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
