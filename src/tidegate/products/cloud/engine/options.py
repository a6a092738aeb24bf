"""The URL and options of a source of cloud providers.

`cloud:///absolute/folder` names the folder of provider documents; what follows may be in the URL,
after `?`, or among the source's options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tidegate.engines.common.url import UNREADABLE, Location, folder_path, read_options
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.settings import CloudSettings
from tidegate.typed_values import decode_json

OPTIONS: Final = (
    "cache_bytes", "cache_seconds", "concurrency", "join_bytes", "join_rows", "max_calls",
    "max_calls_per_minute", "page_limit", "request_timeout", "settings",
)  # fmt: skip
"""`settings` has the keys of the section `cloud` of the settings file, as JSON."""


class CloudOptions(msgspec.Struct, frozen=True):
    """How a source's requests are made.

    `concurrency`: requests of one statement under way at once. `max_calls`: requests that one
    statement may make, pages included; `max_calls_per_minute`: those of one caller, 0 for no
    bound. `page_limit`: pages of one list. `join_rows`, `join_bytes`: what one statement may read
    of other sources, all tables together. `cache_seconds`: how long replies to reads are kept, 0
    for not at all; `cache_bytes`: about how much of them. `request_timeout_s` is for one attempt.
    `settings` are those of providers, which the gate adds to the source.
    """

    folder: str
    settings: CloudSettings = CloudSettings()
    concurrency: int = 16
    max_calls: int = 10_000
    max_calls_per_minute: int = 0
    page_limit: int = 1_000
    request_timeout_s: float = 45.0
    join_rows: int = 100_000
    join_bytes: int = 33_554_432
    cache_seconds: int = 0
    cache_bytes: int = 33_554_432


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
        _settings(options.get("settings", "")),
        _number(options, "concurrency", 16, 1, 256),
        _number(options, "max_calls", 10_000, 1, 10_000_000),
        _number(options, "max_calls_per_minute", 0, 0, 10_000_000),
        _number(options, "page_limit", 1_000, 1, 1_000_000),
        _number(options, "request_timeout", 45, 1, 3_600),
        _number(options, "join_rows", 100_000, 1, 10_000_000),
        _number(options, "join_bytes", 33_554_432, 1_024, 999_999_999),
        _number(options, "cache_seconds", 0, 0, 86_400),
        _number(options, "cache_bytes", 33_554_432, 1_024, 999_999_999),
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


def _settings(text: str) -> CloudSettings:
    if not text:
        return CloudSettings()
    try:
        return decode_json(text, CloudSettings)
    except msgspec.DecodeError as error:
        raise _wrong(f"The option `settings` cannot be read: {str(error)[:200]}.") from None


def _wrong(reason: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_URL, reason, hint="Write cloud:///absolute/folder?max_calls=1000, for example."
    )
