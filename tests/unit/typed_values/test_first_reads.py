"""Threads that read a type for the first time at one moment all get its values."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "tidegate"

RACE = """
import sys, threading, types
import msgspec
from tidegate.typed_values import (
    convert_value, decode_json, decode_msgpack, json_decoder, make_known, msgpack_decoder)

sys.setswitchinterval(1e-6)
FIELDS = "".join(f"    f{k}: 'Middle | None'\\n" for k in range(3))
TYPES = f'''
import msgspec
class Inner(msgspec.Struct):
    x: 'int | None' = None
class Middle(msgspec.Struct):
    y: 'Inner | None' = None
class Outer(msgspec.Struct):
{FIELDS}    z: int
'''
VALUE = {"z": 1, "f0": None, "f1": {"y": {"x": 5}}, "f2": None}
TEXT, PACKED = msgspec.json.encode(VALUE), msgspec.msgpack.encode(VALUE)
WAYS = {
    "decode_json": lambda kind: decode_json(TEXT, kind),
    "decode_msgpack": lambda kind: decode_msgpack(PACKED, kind),
    "convert_value": lambda kind: convert_value(VALUE, kind),
    "json_decoder": lambda kind: json_decoder(kind).decode(TEXT),
    "msgpack_decoder": lambda kind: msgpack_decoder(kind).decode(PACKED),
    "make_known": lambda kind: msgspec.convert(VALUE, make_known(kind)),
    "msgspec": lambda kind: msgspec.json.decode(TEXT, type=kind),
}
way, read = WAYS[sys.argv[1]], []
for number in range(300):
    module = sys.modules[f"m{number}"] = types.ModuleType(f"m{number}")
    exec(TYPES, module.__dict__)
    start = threading.Barrier(3)

    def first(kind=module.Outer):
        start.wait()
        read.append(way(kind).f1.y.x)

    threads = [threading.Thread(target=first) for _ in range(3)]
    for each in threads: each.start()
    for each in threads: each.join()
print(read.count(5))
"""
WAYS = (
    "decode_json", "decode_msgpack", "convert_value", "json_decoder", "msgpack_decoder",
    "make_known",
)  # fmt: skip

LANGUAGE = {
    "dict", "list", "tuple", "str", "int", "float", "bool", "bytes", "None", "Any", "msgspec",
}  # fmt: skip
"""What a type is made of that may be read with msgspec itself, with `msgspec.Raw`."""
MADE_KNOWN = {"_Ordinary", "_ordinary_rows(len(rows[0]), floats, numbers)"}


@pytest.mark.parametrize("way", WAYS)
def test_threads_that_read_a_type_first_all_get_its_values(way: str) -> None:
    ran = subprocess.run([sys.executable, "-c", RACE, way], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "900"), ran.stderr[-2000:]


def test_no_other_module_lets_msgspec_meet_a_class_by_itself() -> None:
    found = [
        f"{path.relative_to(SOURCE).as_posix()}: {ast.unparse(call)}"
        for path in SOURCE.rglob("*.py")
        if path.name != "typed_values.py" and "msgspec" in (text := path.read_text())
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        for kind in _kinds(call)
        if not _is_of_the_language(kind) and ast.unparse(kind) not in MADE_KNOWN
    ]
    assert found == []


def _kinds(call: ast.Call) -> list[ast.expr]:
    """The types that a call of msgspec reads."""
    name = ast.unparse(call.func)
    if name in ("msgspec.json.decode", "msgspec.msgpack.decode", "msgspec.yaml.decode"):
        return [each.value for each in call.keywords if each.arg == "type"]
    if name in ("msgspec.json.Decoder", "msgspec.msgpack.Decoder"):
        return [*call.args[:1], *(each.value for each in call.keywords if each.arg == "type")]
    return call.args[1:2] if name == "msgspec.convert" else []


def _is_of_the_language(kind: ast.expr) -> bool:
    parts = list(ast.walk(kind))
    return all(each.id in LANGUAGE for each in parts if isinstance(each, ast.Name)) and all(
        ast.unparse(each) == "msgspec.Raw" for each in parts if isinstance(each, ast.Attribute)
    )
