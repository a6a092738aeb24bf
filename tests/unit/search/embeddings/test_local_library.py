"""The library of the local model of embeddings, as it is imported here."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = """
from tidegate.config.installation import import_silently
import_silently("onnxruntime").SessionOptions()
"""


def test_it_leaves_nothing_in_the_home_directory(tmp_path: Path) -> None:
    if find_spec("onnxruntime") is None:
        pytest.skip("needs onnxruntime (the extra `embeddings`)")
    # Where CI is set, the library is silent by itself.
    plain = {name: value for name, value in os.environ.items() if name != "CI"}
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", PROGRAM], env={**plain, **home}, check=True)
    assert list(tmp_path.rglob("*")) == []
