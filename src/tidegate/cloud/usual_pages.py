"""What a reply says of further pages where its provider's document says nothing of them: the token
of the next page beside the rows, by the name of a parameter that takes it, and whether the list is
whole. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from tidegate.cloud.model import Method, Parameter
from tidegate.xml_tree import Element

_PLACES: Final = ("query", "header", "body")
_TOKEN: Final = re.compile(r"[a-z]*(?:token|cursor|marker)|page|offset|start")
"""What the parameter of a page is called, less what is no letter."""
_FLAGS: Final = ("istruncated", "truncated", "hasmore", "hasmoreresults")
_ENVELOPES: Final = ("result_info", "pagination", "meta")
"""Objects beside the rows that hold what others have there themselves."""
_LAST_PAGES: Final = ("totalpages", "pages", "pagecount", "lastpage")


class UsualPages(NamedTuple):
    """`values` are those of the parameters that ask for the next page; empty: it cannot be asked
    for. `says_more`: the reply says that the list goes on."""

    values: tuple[tuple[Parameter, Any], ...]
    says_more: bool


_WHOLE: Final = UsualPages((), False)


def read_usual_pages(method: Method, body: Any) -> UsualPages:
    """What a reply to `method` says of the pages behind it. Raises nothing."""
    if not isinstance(body, dict):
        return _WHOLE
    parameters = {
        _letters(each.wire_name): each for each in method.parameters if each.place in _PLACES
    }
    entries = cast("dict[str, Any]", body)
    inner = [entries[name] for name in _ENVELOPES if isinstance(entries.get(name), dict)]
    for each in (entries, *inner):
        found = _read(each, parameters)
        if found.says_more or found.values:
            return found
    return _WHOLE


def envelope_of(root: Element) -> dict[str, str]:
    """What stands beside the rows of a reply in XML, by its names: below the root, or in AWS's
    query protocol below its result."""
    places = [root, *(each for each in root.children if each.name.endswith("Result"))]
    found: dict[str, str] = {}
    for place in places:
        for child in place.children:
            if not child.children:
                found.setdefault(child.name, child.text.strip())
    if found.get("IsTruncated") == "true" and "NextMarker" not in found:
        # S3 names the next page of a list without delimiters by the last key of this one.
        keys = [key.text for each in root.all("Contents") for key in each.all("Key")]
        found |= {"NextMarker": keys[-1]} if keys else {}
    return found


def _read(entries: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> UsualPages:
    named = {_letters(name): value for name, value in entries.items()}
    is_cut = next((found for name in _FLAGS if (found := _flag(named.get(name))) is not None), None)
    if is_cut is False:
        return _WHOLE
    values = dict(_tokens(entries, parameters, is_cut))
    page, last = named.get("page"), next(filter(None, map(named.get, _LAST_PAGES)), None)
    has_pages = isinstance(page, int) and isinstance(last, int) and page < last
    if has_pages and "page" in parameters and not values:
        values["page"] = cast("int", page) + 1
    return UsualPages(
        tuple([(parameters[name], value) for name, value in values.items()]),
        bool(is_cut or has_pages or values),
    )


def _tokens(
    entries: Mapping[str, Any], parameters: Mapping[str, Parameter], is_cut: bool | None
) -> Iterator[tuple[str, Any]]:
    """The names of parameters, less what is no letter, and the values for the next page."""
    cursors = entries.get("cursors")
    if isinstance(cursors, dict) and "cursor" in parameters:
        after = cast("dict[str, Any]", cursors).get("after")
        if isinstance(after, str) and after:
            yield "cursor", after
    for name, value in entries.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, dict)) or not value:
            continue
        if isinstance(value, str) and "://" in value:
            continue  # a link, and no token
        for wanted in _takers(name, is_cut):
            parameter = parameters.get(wanted)
            if parameter is None or (isinstance(value, dict) and parameter.place != "body"):
                continue
            if _letters(name) == wanted == "marker" and parameter.wire_name != name:
                continue  # S3 repeats the `marker` that it was asked with as `Marker`
            yield wanted, value
            break


def _takers(name: str, is_cut: bool | None) -> tuple[str, ...]:
    """The parameters that may take the value of a field for the next page."""
    key = _letters(name)
    if key.startswith("next") and _TOKEN.fullmatch(key[4:]):
        return key, key[4:]
    if key.startswith("lastevaluated"):
        return (f"exclusivestart{key.removeprefix('lastevaluated')}",)
    if key == "marker" and is_cut:
        return ("marker",)
    if key == "continuationtoken" and is_cut is None:
        return ("continuationtoken",)  # where a flag stands, this repeats what was asked with
    if key == "lastid" and is_cut:
        return ("after", "afterid")
    return ()


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def _letters(name: str) -> str:
    """A name without what is no letter, in small ones."""
    return re.sub(r"[^a-z]", "", name.lower())
