"""The URL and options of a source of cloud providers.

`cloud:///absolute/folder` names the folder of provider documents; what follows may be in the URL,
behind `?`, or among the source's options.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tidegate.engines.common.url import UNREADABLE, Location, folder_path, read_options
from tidegate.errors import Code, TidegateError

OPTIONS: Final = (
    "auth", "concurrency", "endpoints", "max_calls", "page_limit", "request_timeout",
)  # fmt: skip
"""What `OptionValues` has; `auth` is JSON of logins that take the place of the documents."""
_PREFIX: Final = re.compile(r"https?://[^/\s?#@]+(?:/[^\s?#]*)?")


class Endpoint(msgspec.Struct, frozen=True):
    """Requests whose URL begins with `prefix` are sent to `target` instead. `*` at the beginning of
    a host stands for any labels: `https://*.amazonaws.com`."""

    prefix: str
    target: str


class CloudOptions(msgspec.Struct, frozen=True):
    """How a source's requests are made.

    `concurrency`: requests of one statement under way at once. `max_calls`: requests that one
    statement may make, pages included. `page_limit`: pages of one list. `request_timeout_s` is for
    one attempt. `auth` is what the operator set instead of the documents' logins, as JSON.
    """

    folder: str
    endpoints: tuple[Endpoint, ...] = ()
    concurrency: int = 16
    max_calls: int = 10_000
    page_limit: int = 1_000
    request_timeout_s: float = 45.0
    auth: str = ""


def read_cloud_options(url: str, given: Mapping[str, str]) -> CloudOptions:
    """The options of a source. Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE if the folder
    is not there."""
    options = read_options(url.partition("?")[2], OPTIONS)
    for name, value in given.items():
        if name in options:
            raise _wrong(f"The option `{name}` is in the URL and among the source's options.")
        options[name] = value
    folder = path_of(url)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir hides permission errors
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"There is no folder of provider documents at {folder}.",
            hint="Write cloud:///absolute/folder, which holds src/<provider>/<version>.",
            details={"path": folder},
        )
    return CloudOptions(
        folder,
        _endpoints(options.get("endpoints", "")),
        _number(options, "concurrency", 16, 1, 256),
        _number(options, "max_calls", 10_000, 1, 10_000_000),
        _number(options, "page_limit", 1_000, 1, 1_000_000),
        _number(options, "request_timeout", 45, 1, 3_600),
        options.get("auth", ""),
    )


def path_of(url: str) -> str:
    """The folder that a URL names. Raises: TidegateError SOURCE_URL."""
    try:
        return folder_path(url)
    except TidegateError:
        raise _wrong("The URL of a source of cloud providers names a folder and no host.") from None


def locate(url: str) -> Location:
    """What a listing shows of a URL. Raises nothing."""
    try:
        return Location("", 0, path_of(url), "")
    except TidegateError:
        return UNREADABLE


def _number(options: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
        raise _wrong(f"The option `{name}` is a number from {least} to {most}.")
    return int(text)


def _endpoints(text: str) -> tuple[Endpoint, ...]:
    if not text:
        return ()
    wrong = _wrong(
        "The option `endpoints` is a JSON object of URL prefixes and the URLs that take their"
        ' place, such as {"https://*.amazonaws.com": "http://127.0.0.1:5000"}.'
    )
    try:
        read: object = json.loads(text)
    except ValueError:
        raise wrong from None
    if not isinstance(read, dict):
        raise wrong
    endpoints: list[Endpoint] = []
    for prefix, target in read.items():  # pyright: ignore[reportUnknownVariableType]
        if not all(isinstance(each, str) and _PREFIX.fullmatch(each) for each in (prefix, target)):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            raise wrong
        endpoints.append(Endpoint(str(prefix).rstrip("/"), str(target).rstrip("/")))  # pyright: ignore[reportUnknownArgumentType]
    return tuple(sorted(endpoints, key=lambda each: -len(each.prefix)))


def _wrong(reason: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_URL, reason, hint="Write cloud:///absolute/folder?max_calls=1000, for example."
    )
