"""`python -m release.image [FOLDER]`: an OCI image of the last commit, built twice and compared.

Nothing is fetched but packages: Debian's, of which mmdebstrap makes the files of the image, and the
wheels that `requirements/service.txt` pins. buildah makes them an image with one layer. It has no
shell and no package manager.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from release import Commit, Refusal
from release.building import build, check_out, read_commit, run
from release.command import ROOT, run_command
from release.root_files import root_files
from release.versions import read_version

UMASKS = {"one": 0o022, "another": 0o077}
TOOLS = {"mmdebstrap": "mmdebstrap", "buildah": "buildah", "strip": "binutils"}
"""The programs that it needs, and the packages of Debian that bring them."""
MOST_BYTES = 110_000_000
"""Of the layer, as it is sent."""
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PYTHON = "3.11"
"""That of Debian 12, for which wheels are chosen."""
USER = "10001:0"
VARIABLES = {
    "TIDEGATE_CONFIG": "/etc/tidegate/settings.toml",
    "TIDEGATE_STATE": "/var/lib/tidegate/state",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}


class Built(NamedTuple):
    """One build: the folder of its OCI layout, the digest of its manifest, the bytes of its
    layer."""

    layout: Path
    digest: str
    size: int


def main() -> int:
    """Build into the folder that is named; returns an exit status."""
    return run_command("image", __doc__, "build/image", _make_here)


def _make_here(folder: Path) -> list[str]:
    file, built = make_image(ROOT, folder)
    return [f"{built.size:>10,}  bytes of the layer", built.digest, str(file)]


def make_image(repository: Path, folder: Path) -> tuple[Path, Built]:
    """Build the image of the commit that is checked out in `repository` and write it to `folder`.
    Raises: Refusal."""
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if missing:
        raise Refusal(f"The image needs {' and '.join(missing)}: apt-get install them.")
    commit = read_commit(repository)
    with tempfile.TemporaryDirectory(prefix="image-") as place:
        base = Path(place)
        base.chmod(0o755)  # an account of a container reads below it
        wheels = _fetch_wheels(repository, base / "wheels")
        first, second = (
            _build_once(repository, commit, wheels, base / name, umask)
            for name, umask in UMASKS.items()
        )
        if first.digest != second.digest:
            raise Refusal(f"Two builds differ: {first.digest} and {second.digest}.")
        if first.size > MOST_BYTES:
            raise Refusal(f"The layer has {first.size:,} bytes; {MOST_BYTES:,} are the most.")
        version = read_version(base / "one" / "tree")
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"tidegate-{version}-{_architecture()}.oci.tar"
        _pack(first.layout, file, commit)
        for name in ("compose.yaml", "compose-settings.toml"):
            target = "settings.toml" if name.endswith(".toml") else name
            shutil.copyfile(base / "one" / "tree" / "deploy" / "container" / name, folder / target)
        (folder / "digest").write_text(f"{first.digest}\n", "utf-8")
        return file, first


def _build_once(repository: Path, commit: Commit, wheels: Path, base: Path, umask: int) -> Built:
    """One build below `base`, whose `tree` has the commit's files then. Raises: Refusal."""
    tree = check_out(repository, commit, base, umask)
    results, packages = base / "results", base / "packages"
    for each in (results, packages):
        each.mkdir()
    build(tree, "wheel", results, commit, umask)
    (wheel,) = results.glob("*.whl")
    _install(tree, wheels, wheel, packages, umask)
    container = tree / "deploy" / "container"
    raw, layer = base / "root.tar", base / "layer.tar"
    run(
        ["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(_debian(container))}",
         f'--extract-hook=sh "{container}/finish.sh" "$1" "{packages}" "{container}"',
         "--format=tar", "bookworm", str(raw)],
        base, umask, SOURCE_DATE_EPOCH=str(commit.epoch),
    )  # fmt: skip
    root_files(raw, layer, commit.epoch)
    raw.unlink()
    return _make_layout(layer, read_version(tree), commit, base)


def _debian(container: Path) -> list[str]:
    """The packages of Debian in the image."""
    lines = (container / "debian.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _fetch_wheels(repository: Path, folder: Path) -> Path:
    """The pinned wheels, for the Python of the image. Raises: Refusal."""
    folder.mkdir()
    pins = repository / "requirements" / "service.txt"
    run([*_pip("download"), "--dest", str(folder), "-r", str(pins)], repository, 0o022)
    return folder


def _install(tree: Path, wheels: Path, wheel: Path, folder: Path, umask: int) -> None:
    """Unpack the pinned wheels and ours into `folder`. Raises: Refusal."""
    pins = tree / "requirements" / "service.txt"
    words = ["--no-index", "--find-links", str(wheels), "--no-compile", "--target", str(folder)]
    run([*_pip("install"), *words, "-r", str(pins), str(wheel)], tree, umask)


def _pip(command: str) -> list[str]:
    machine = os.uname().machine
    tags = ("manylinux_2_36", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
    platforms = [word for tag in tags for word in ("--platform", f"{tag}_{machine}")]
    return [
        *(sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check"),
        *("--no-input", "--no-deps", "--only-binary", ":all:", "--implementation", "cp"),
        *("--python-version", PYTHON, *platforms),
    ]  # fmt: skip


def _architecture() -> str:
    machine = os.uname().machine
    if machine not in MACHINES:
        raise Refusal(f"Images are for {' and '.join(MACHINES)}, and this is {machine}.")
    return MACHINES[machine]


def _make_layout(layer: Path, version: str, commit: Commit, base: Path) -> Built:
    """An OCI layout of the layer, made in a store of its own. Raises: Refusal."""
    storage = ["--root", f"{base}/store", "--runroot", f"{base}/run", "--storage-driver", "vfs"]

    def buildah(*words: str) -> str:
        return run(["buildah", *storage, *words], base, 0o022).strip()

    container = buildah("from", "--arch", _architecture(), "scratch")
    buildah("add", container, str(layer), "/")
    labels = {
        "title": "Tidegate",
        "description": "Governed access to databases for AI agents",
        "version": version,
        "revision": commit.name,
        "licenses": "Apache-2.0",
    }
    buildah(
        "config", "--user", USER, "--workingdir", "/", "--stop-signal", "SIGTERM",
        "--entrypoint", json.dumps(["/usr/local/bin/tidegate"]), "--cmd", "serve",
        "--port", "7878", "--author", "",
        *_each("--env", VARIABLES),
        *_each("--label", {f"org.opencontainers.image.{key}": labels[key] for key in labels}),
        container,
    )  # fmt: skip
    name = f"localhost/tidegate:{version}"
    buildah("commit", "--quiet", "--timestamp", str(commit.epoch), "--rm", container, name)
    layout = base / "layout"
    buildah("push", "--quiet", name, f"oci:{layout}:{name}")
    buildah("rmi", "--all", "--force")
    manifest = json.loads((layout / "index.json").read_text("utf-8"))["manifests"][0]
    return Built(layout, manifest["digest"], _layer_bytes(layout, manifest["digest"]))


def _each(option: str, values: dict[str, str]) -> Sequence[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]


def _layer_bytes(layout: Path, digest: str) -> int:
    blob = layout / "blobs" / digest.replace(":", "/")
    manifest: dict[str, Any] = json.loads(blob.read_text("utf-8"))
    return sum(layer["size"] for layer in manifest["layers"])


def _pack(layout: Path, file: Path, commit: Commit) -> None:
    """The layout as one file, with the same bytes for the same digest."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = commit.epoch
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    draft = file.with_suffix(".new")
    with tarfile.open(draft, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(layout.rglob("*")):
            archive.add(path, path.relative_to(layout).as_posix(), recursive=False, filter=plain)
    draft.replace(file)


if __name__ == "__main__":
    sys.exit(main())
