"""`tidegate cloud check | pull`."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import quote

import msgspec

from tidegate.cli.progress import progress
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import print_status, show, show_json
from tidegate.cloud.check import check_registry
from tidegate.cloud.registry import Registry
from tidegate.cloud.registry_folder import RegistryFolder
from tidegate.config.model import Config
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand

FAULTY = 1


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    return {"check": _check, "pull": _pull}[arguments.action](arguments)


def _pull(arguments: argparse.Namespace) -> int:
    config = load_for_state(arguments)
    registry = Registry(config.cloud)
    folder = _folder(arguments, config)
    try:
        pulled = registry.pull(arguments.provider, arguments.version, folder / "src")
    except OSError as error:
        raise _unwritable(folder, error) from None
    show(f"pulled {pulled.provider} {pulled.version} from {registry.address}")
    print_status(f"a source for it has the URL cloud://{quote(str(folder))}")
    return 0


def _folder(arguments: argparse.Namespace, config: Config) -> Path:
    if arguments.folder:
        return expand(arguments.folder).absolute()
    return state_directory(config.state) / "cloud"


def _unwritable(folder: Path, error: OSError) -> TidegateError:
    return TidegateError(
        Code.STATE_FAILED,
        f"The folder {folder} cannot be written: {error.strerror or error}.",
        details={"path": str(folder)},
    )


def _check(arguments: argparse.Namespace) -> int:
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
