"""The jars of a source's driver: those that its options name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tidegate.engines.jdbc.products import Product
from tidegate.errors import Code, TidegateError


def find_jars(options: Mapping[str, str], product: Product) -> list[str]:
    """The absolute paths of the driver's jars: the files and folders of the option `driver_path`.

    Raises: TidegateError ENGINE_MISSING if none is named, or one is not there.
    """
    named = options.get("driver_path")
    if not named:
        raise TidegateError(
            Code.ENGINE_MISSING,
            f"Driver not found: no jar of a JDBC driver for {product.title} is named.",
            hint="Name its jar, or a folder of jars, with the source's option `driver_path`.",
        )
    jars: list[str] = []
    for part in named.split(os.pathsep):
        path = Path(part).expanduser().absolute()
        found = sorted(path.glob("*.jar")) if path.is_dir() else [path]
        if not found or not all(map(_is_file, found)):
            raise TidegateError(
                Code.ENGINE_MISSING,
                f"Driver not found: there is no jar at {path}.",
                hint="Correct the source's option `driver_path`.",
                details={"path": str(path)},
            )
        jars += [str(each) for each in found]
    return jars


def _is_file(path: Path) -> bool:
    return path.is_file()
