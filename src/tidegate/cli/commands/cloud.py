"""`tidegate cloud check`."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from tidegate.cli.progress import progress
from tidegate.cli.terminal import print_status, show, show_json
from tidegate.cloud.check import check_registry
from tidegate.cloud.registry_folder import RegistryFolder

FAULTY = 1


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    folder = RegistryFolder(Path(arguments.folder))
    total = sum(1 for _ in folder.provider_paths())
    with progress("checking documents", max(total, 1)) as advance:
        check = check_registry(folder, lambda path: advance(path, path.endswith("/provider.yaml")))
    if arguments.json:
        show_json(msgspec.to_builtins(check))
    else:
        for fault in check.faults:
            show(f"{fault.document} {fault.resource}".rstrip() + f": {fault.problem}")
        counts = msgspec.structs.asdict(check)
        show("  ".join(f"{name} {count:,}" for name, count in counts.items() if name != "faults"))
    if not check.providers and not check.errors:
        print_status(f"there is no src/<provider>/<version>/provider.yaml in {arguments.folder}")
        return FAULTY
    return FAULTY if check.errors else 0
