"""How this Tidegate was installed: what a person types to add an extra, and what a client starts.

`uvx` and `pipx run` make an environment in a cache, which may be gone tomorrow: there a client must
start the runner, not the program in the cache.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.product import Product, own_entries

Kind = Literal["uvx", "uv tool", "pipx", "pipx run", "pip"]


def _extras(product: Product) -> Mapping[str, str]:
    return product.extras


EXTRAS = {
    "duckdb": "duckdb",
    "embeddings": "onnxruntime",
    "excel": "python_calamine",
    "keyring": "keyring",
    "oauth": "jwt",
    "postgres": "psycopg",
    "progress": "rich",
    **own_entries(_extras),
}
"""The extras of the package, and a module that each brings."""

_SILENCED = {"ORT_DISABLE_TELEMETRY": "1"}
"""What keeps libraries from writing to the home directory and from reporting to their makers.
onnxruntime does both from 1.29 on, when it is imported."""

_NAMED = "`tidegate "
_UV_CACHE = re.compile(r"(archive|environments|builds)-v\d+")


class Installation(NamedTuple):
    """`prefix` is the environment's directory; `origin` where the package came from, if that was
    no index: a URL (PEP 610). `extras` are those that are there."""

    kind: Kind
    prefix: Path
    origin: str | None = None
    editable: bool = False
    extras: tuple[str, ...] = ()

    def requirement(self, extras: Iterable[str] = ()) -> str:
        """The package with its extras and these, as pip and uv read it."""
        names = ",".join(sorted({*self.extras, *extras}))
        name = f"tidegate[{names}]" if names else "tidegate"
        return f"{name} @ {self.origin}" if self.origin else name

    def run_words(self, extras: Iterable[str] = ()) -> list[str]:
        """What runs the package from a cache, with these extras too; empty if it is installed."""
        if self.kind == "uvx":
            return ["uvx", "--from", self.requirement(extras), "tidegate"]
        if self.kind == "pipx run":
            return ["pipx", "run", "--spec", self.requirement(extras), "tidegate"]
        return []

    def add_command(self, extra: str) -> str:
        """What a person types to have the extra, too. Where nothing is installed that is the check
        that finds the entries of clients which lack it."""
        run = self.run_words([extra])
        return shlex.join([*run, "doctor"]) if run else self._install_command(extra)

    def command_with(self, extra: str, words: Iterable[str]) -> str:
        """What a person types to run a command of Tidegate with the extra."""
        run = self.run_words([extra])
        if run:
            return shlex.join([*run, *words])
        return f"{self._install_command(extra)} && {shlex.join([self._program(), *words])}"

    def _program(self) -> str:
        """What a person types for this program: its path, where the name is another's or no
        one's, as in an environment that was not activated."""
        own, found = self.prefix / _PROGRAMS / "tidegate", shutil.which("tidegate")
        is_named = found is not None and own.is_file() and own.samefile(found)
        return str(own) if own.is_file() and not is_named else "tidegate"

    def _install_command(self, extra: str) -> str:
        wanted = shlex.quote(self.requirement([extra]))
        if self.kind == "uv tool":
            return f"uv tool install --force {wanted}"
        if self.kind == "pipx":
            return f"pipx install --force {wanted}"
        python = shlex.quote(str(self.prefix / _PROGRAMS / "python"))
        if self.editable and self.origin:
            path = self.origin.removeprefix("file://")
            wanted = f"-e {shlex.quote(f'{path}[{extra}]')}"
        if not _has_pip(self.prefix):
            return f"uv pip install --python {python} {wanted}"
        return f"{python} -m pip install {wanted}"


_PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"


def installation() -> Installation:
    """That of this process."""
    prefix = Path(sys.prefix)
    kind = kind_of(prefix)
    if kind == "uvx" and _is_run_by_pipx():
        kind = "pipx run"
    origin, editable = _origin()
    extras = tuple(name for name, module in EXTRAS.items() if _is_there(module))
    return Installation(kind, prefix, origin, editable, extras)


def _is_run_by_pipx() -> bool:
    """Whether it was pipx that had uv make this environment. It brings a uv of its own, so that a
    person who has pipx alone cannot type `uvx`; one who has both can type either."""
    if shutil.which("uvx") is not None:
        return False
    if shutil.which("pipx") is not None:
        return True
    uv = os.environ.get("UV")  # uv names itself to what it runs
    programs = Path(uv).parent if uv else None
    # A client from the desktop has neither on its PATH. The uv of pipx is in pipx's environment.
    return (
        programs is not None
        and (programs / "pipx").is_file()
        and (programs.parent / "pyvenv.cfg").is_file()
    )


def kind_of(prefix: Path) -> Kind:
    """How the environment at `prefix` was made. That of a desktop client's bundle has a uv of the
    client's own, and no program that a person could type: to them it is as with `uvx`."""
    if any(_UV_CACHE.fullmatch(part) for part in prefix.parts) or _is_of_bundle(prefix):
        return "uvx"
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    if "pipx" in prefix.parts or (prefix / "pipx_metadata.json").is_file():
        return "pipx" if prefix.parent.name == "venvs" else "pipx run"
    return "pip"


def _is_of_bundle(prefix: Path) -> bool:
    try:
        return '"mcp_config"' in (prefix.parent / "manifest.json").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def add_command(extra: str) -> str:
    """What a person types to add an extra to this installation."""
    return installation().add_command(extra)


def as_typed(text: str) -> str:
    """The text with each command of Tidegate as the reader has to type it: where nothing is
    installed there is no program `tidegate`, and the runner starts it."""
    if _NAMED not in text and not text.startswith(_NAMED[1:]):
        return text
    return with_runner(text, _runner())


def with_runner(text: str, run: Iterable[str]) -> str:
    """The text with `run` before the words of each command, in grave accents or the whole of it."""
    typed = shlex.join(run)
    if not typed:
        return text
    if text.startswith(_NAMED[1:]):
        text = f"{typed} {text.removeprefix(_NAMED[1:])}"
    return text.replace(_NAMED, f"`{typed} ")


@cache
def _runner() -> tuple[str, ...]:
    run = installation().run_words()
    short = {("uvx", "--from"): ("uvx",), ("pipx", "run", "--spec"): ("pipx", "run")}
    for words, runner in short.items():
        if run == [*words, "tidegate", "tidegate"]:
            return (*runner, "tidegate")
    return tuple(run)


def client_command(extras: Iterable[str] = ()) -> list[str]:
    """The absolute command by which a client starts Tidegate tomorrow, too: from another directory,
    with a PATH of its own. Where nothing is installed, it names the extras that are here and these.

    Raises: TidegateError CLIENT_FILE if the program that starts it is not found.
    """
    run = installation().run_words(extras)
    if run:
        return [_found(run[0]), *run[1:]]
    beside = Path(sys.executable).with_name("tidegate")
    return [str(beside) if beside.is_file() else _found("tidegate")]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package that is broken
        return False


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise TidegateError(
            Code.CLIENT_FILE, f"The program `{program}` is not found", hint="Install it first."
        )
    return str(Path(found).absolute())


def _has_pip(prefix: Path) -> bool:
    return (
        any(prefix.glob("lib*/python*/site-packages/pip"))
        or (prefix / "Lib" / "site-packages" / "pip").is_dir()
    )


def _origin() -> tuple[str | None, bool]:
    try:
        text = metadata.distribution("tidegate").read_text("direct_url.json")
        found = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None, False
    url = found.get("url")
    if not isinstance(url, str):
        return None, False
    vcs = found.get("vcs_info")
    if vcs:
        return f"{vcs.get('vcs', 'git')}+{url}", False
    return url, bool(found.get("dir_info", {}).get("editable"))


def import_silently(module: str) -> ModuleType:
    """Import a library of an extra, which then reports to its maker nothing of what it is used for.

    Raises: ImportError, and whatever a broken library raises.
    """
    os.environ.update(_SILENCED)
    return import_module(module)
