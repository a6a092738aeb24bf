"""Parses a source's URL: which file, and how it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from tidegate.engines.common.url import NONE_GIVEN, FileUrl, parse_file_url
from tidegate.errors import Code, TidegateError

OPTIONS = ("immutable", "mode", "timeout")
"""`timeout`: seconds to wait for a lock; `mode=ro`: never open for changes; `immutable=1`: the file
cannot change (a read-only disk)."""

_names = count(1)


def read_url(url: str, given: Mapping[str, str] = NONE_GIVEN) -> FileUrl:
    """The file that a URL names, with its options. Raises: TidegateError SOURCE_URL."""
    file = parse_file_url(url, OPTIONS, given)
    options = dict(file.options)
    allowed = {"mode": ("ro", "rw"), "immutable": ("0", "1")}
    for name, values in allowed.items():
        if options.get(name, values[0]) not in values:
            raise TidegateError(
                Code.SOURCE_URL, f"The option `{name}` is one of {', '.join(values)}."
            )
    timeout = options.get("timeout", "5")
    if not timeout.replace(".", "", 1).isdecimal():
        raise TidegateError(Code.SOURCE_URL, "The option `timeout` is a number of seconds.")
    if file.path is None:
        options["memory"] = f"tidegate-{next(_names)}"
    return FileUrl(file.path, options)


def check_writable(file: FileUrl) -> None:
    """Raises: TidegateError POLICY_READ_ONLY if the source's URL says that it is never written."""
    if file.options.get("mode") == "ro" or file.options.get("immutable") == "1":
        raise TidegateError(Code.POLICY_READ_ONLY, "The source's URL opens it for reading only.")
