"""What differs between operating systems is asked in `tidegate.system` alone, where a port would be
written: locks, owners and modes, processes and signals, descriptors, terminals, limits, files of
the kernel. Everything else uses what Python has on every system, and `tidegate.system`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.documents import ROOT

SOURCE = ROOT / "src" / "tidegate"
SEAM = SOURCE / "system"

MODULES = {
    "fcntl", "grp", "posix", "pty", "pwd", "resource", "signal", "syslog", "termios", "tty",
}  # fmt: skip
"""Modules of POSIX, and the signals, whose numbers and meanings differ."""

OS_NAMES = {
    "DirEntry", "PathLike", "R_OK", "W_OK", "X_OK", "_exit", "access", "chdir", "close", "devnull",
    "environ", "fdopen", "fsencode", "fspath", "fstat", "fsync", "ftruncate", "getpid", "listdir",
    "lstat", "path", "pathsep", "read", "scandir", "sep", "stat", "stat_result", "strerror",
    "truncate", "urandom", "utime", "write",
}  # fmt: skip
"""What of `os` means the same on every system. Not `open`: its flags and modes do not."""

STAT_NAMES = {"S_ISDIR", "S_ISFIFO", "S_ISLNK", "S_ISREG", "S_ISSOCK"}
ATTRIBUTES = {
    "st_uid", "st_gid", "st_blocks", "chmod", "lchmod",
    "add_signal_handler", "remove_signal_handler",
}  # fmt: skip
ARGUMENTS = {"start_new_session", "process_group", "preexec_fn", "pass_fds", "dir_fd"}
KERNEL_FILES = re.compile(r"/(?:proc|sys|dev|run)/")

FILES = sorted(file for file in SOURCE.rglob("*.py") if SEAM not in file.parents)


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def attribute_fault(node: ast.Attribute) -> bool:
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    if owner == "os":
        return node.attr not in OS_NAMES
    if owner == "stat" and node.attr.startswith("S_"):
        return node.attr not in STAT_NAMES
    return node.attr in ATTRIBUTES


def call_faults(node: ast.Call) -> Iterator[str]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    for keyword in node.keywords:
        if keyword.arg in ARGUMENTS or (called == "mkdir" and keyword.arg == "mode"):
            yield f"the argument {keyword.arg}"


def compares_mode(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.BitAnd) and any(
        isinstance(part, ast.Attribute) and part.attr == "st_mode" for part in ast.walk(node)
    )


def names_kernel_file(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and KERNEL_FILES.match(node.value) is not None
    )


def faults(code: str) -> list[str]:
    """The lines of a module that ask the system itself."""
    tree = ast.parse(code)
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        what = [f"import of {name}" for name in imports(node) if name in MODULES]
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "stat"):
            what.append(f"names of {node.module}, which this test does not follow")
        if isinstance(node, ast.Attribute) and attribute_fault(node):
            what.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            what += call_faults(node)
        if isinstance(node, ast.BinOp) and compares_mode(node):
            what.append("a mode that is compared")
        if names_kernel_file(node) and id(node) not in said:
            what.append("a file of the kernel")
        found += [f"line {getattr(node, 'lineno', 0)}: {each}" for each in what]
    return found


def test_only_the_seam_asks_the_operating_system() -> None:
    found = {
        file.relative_to(SOURCE).as_posix(): lines
        for file in FILES
        if (lines := faults(file.read_text(encoding="utf-8")))
    }
    assert found == {}, "ask by a function of tidegate.system"


@pytest.mark.parametrize(
    "code",
    [
        "def lock():\n    import fcntl",
        "from signal import SIGTERM",
        "os.open(path, os.O_RDONLY)",
        "os.kill(pid, 15)",
        "from os import kill",
        "path.stat().st_uid == 0",
        "path.stat().st_mode & 0o077",
        "stat.S_IMODE(status)",
        "path.chmod(0o600)",
        "path.mkdir(mode=0o700)",
        "Popen(command, start_new_session=True)",
        "loop.add_signal_handler(2, stop)",
        "Path(f'/proc/{pid}/comm')",
    ],
)
def test_a_module_that_asks_by_itself_is_found(code: str) -> None:
    assert len(faults(code)) >= 1


def test_what_is_the_same_everywhere_is_no_fault() -> None:
    code = '"""Reads /proc/locks."""\nos.fstat(file).st_size\nstat.S_ISREG(status.st_mode)\n'
    assert faults(code) == []


def test_the_seam_can_be_imported_on_any_system_and_knows_nothing_of_tidegate() -> None:
    for file in SEAM.glob("*.py"):
        at_once = [node for node in ast.parse(file.read_text()).body if not is_definition(node)]
        imported = {name for node in at_once for name in imports(node)}
        assert imported.isdisjoint(MODULES - {"signal"}), file.name
        assert not [name for name in imported if name.startswith("tidegate.")], file.name
        for node in at_once:
            for each in ast.walk(node):
                assert not (isinstance(each, ast.Attribute) and attribute_fault(each)), file.name


def is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)
