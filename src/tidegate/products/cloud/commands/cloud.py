"""`tidegate cloud check | pull | import`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tidegate.cli.progress import progress
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import print_status, show, show_json
from tidegate.config.model import Config
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.products.cloud.authoring.check import check_registry
from tidegate.products.cloud.authoring.openapi_import import VERSION, import_openapi
from tidegate.products.cloud.documents.registry import Registry
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.yaml_reader import MOST_BYTES, read_yaml
from tidegate.products.cloud.settings import CloudSettings
from tidegate.system.private_files import make_private_directory, replace_file

FAULTY = 1


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    return {"check": _check, "pull": _pull, "import": _import}[arguments.action](arguments)


def _pull(arguments: argparse.Namespace) -> int:
    config = load_for_state(arguments)
    registry = Registry(config.section(CloudSettings))
    folder = _folder(arguments, config)
    try:
        pulled = registry.pull(arguments.provider, arguments.version, folder / "src")
    except OSError as error:
        raise _unwritable(folder, error) from None
    show(f"pulled {pulled.provider} {pulled.version} from {registry.address}")
    print_status(f"a source for it has the URL cloud://{quote(str(folder))}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    config = load_for_state(arguments)
    path = Path(arguments.file)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TidegateError(
            Code.DOCUMENT_INVALID,
            f"{path} cannot be read: {error.strerror or error}.",
            hint="Name an OpenAPI document, a YAML or JSON file that can be read.",
        ) from None
    made = import_openapi(
        read_yaml(content, path.name),
        path.name,
        arguments.provider,
        arguments.service,
        arguments.server or "",
    )
    folder = _folder(arguments, config)
    target = folder / "src" / arguments.provider / VERSION
    if target.exists() and not arguments.replace:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is a provider {arguments.provider} in {folder}.",
            hint="Choose another name, or give --replace.",
        )
    try:
        services = target / "services"
        make_private_directory(services)
        _write(services / f"{arguments.service}.yaml", made.service)
        _write(target / "provider.yaml", made.provider)
    except OSError as error:
        raise _unwritable(folder, error) from None
    for line in made.left_out:
        print_status(f"left out: {line}")
    show(
        f"imported {arguments.provider}.{arguments.service}: "
        f"resources {made.resources:,}  methods {made.methods:,}"
    )
    if made.variables:
        print_status(f"its login reads {' and '.join(made.variables)}")
    print_status(f"a source for it has the URL cloud://{quote(str(folder))}")
    return 0


def _write(path: Path, tree: dict[str, Any]) -> None:
    """JSON is YAML, too, and is read faster."""
    replace_file(path, json.dumps(tree, indent=1).encode())


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
