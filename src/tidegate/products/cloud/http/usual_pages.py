"""What a reply says of further pages where its provider's document says nothing of them: the
address of the next page, or the values of the parameters that ask for it, and whether the list is
whole. Pure.

A reply is read with its headers, since some say there what others have beside the rows. Names are
compared without what is no letter, so `X-Next-Page`, `next_page` and `nextPage` are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tidegate.products.cloud.documents.model import Method, Parameter
from tidegate.products.cloud.http.page_names import (
    ADDRESS,
    ADDRESSES,
    AFTERS,
    CERTAIN_TOTALS,
    DONE,
    ECHOED,
    ENVELOPE,
    ENVELOPES,
    LAST,
    LAST_PAGES,
    LATER,
    LEFT,
    MAYBE_TIMES,
    MORE,
    MORE_OF,
    NO_TOKENS,
    OFFSETS,
    PAGERS,
    PAGES,
    PARAMETERS,
    SIZES,
    TOKEN,
    TOKENS,
    TOTALS,
)
from tidegate.xml_tree import Element

_PLACES: Final = ("query", "header", "body")
_AFTER: Final = ("cursors", "paging", "pagination", "meta")
"""Those in which `after` is the token of the next page."""
_DEEPEST: Final = 3
_RANGE: Final = re.compile(r"\s*[\w-]+[ =](\d{1,18})-(\d{1,18})/(\d{1,18})\s*")
_NUMBER: Final = re.compile(r"\d{1,18}")


class UsualPages(NamedTuple):
    """`values` are those of the parameters that ask for the next page; `address` is where it is, if
    the reply names that. Without either it cannot be asked for. `says_more`: the reply says that
    the list goes on; `is_counted`, by numbers alone. `is_guessed`: nothing says whether pages count
    from 0 or from 1, so the next may be this one again."""

    values: tuple[tuple[Parameter, Any], ...] = ()
    says_more: bool = False
    address: str | None = None
    is_counted: bool = False
    is_guessed: bool = False


_WHOLE: Final = UsualPages()


class AskedPage(NamedTuple):
    """What is known of the request, and of the list in its reply.

    `is_counted`: it was the first of the list, or asked for because of what the one before it said
    of numbers alone. `members` are None where there is no list, or where it is is not known."""

    url: str = ""
    is_first: bool = True
    is_counted: bool = True
    members: list[Any] | None = None


def read_usual_pages(
    method: Method,
    body: Any,
    headers: Mapping[str, str] | None = None,
    asked: AskedPage | None = None,
    *,
    counts: bool = True,
) -> UsualPages:
    """What a reply to `method` says of the pages after it. `counts`: by its totals as well, which
    a document's own way of paging has no use for. Raises nothing."""
    found: dict[str, Any] = {}
    at = body
    for step in (*(method.response.object_key or ()), None):
        if isinstance(at, dict):
            entries = cast("dict[str, Any]", at)
            _gather(entries, found, 0)
            at = entries.get(step) if step is not None else None
    from_headers = _of_headers(headers or {})
    for name, value in from_headers.items():
        found.setdefault(name, value)
    if not found:
        return _WHOLE
    return _Reply(method, found, asked or AskedPage()).read(counts=counts)


def list_of(body: Any, key: tuple[str, ...] | None) -> list[Any] | None:
    """The list of a reply in JSON, at a document's path or else the only one that there is; None if
    there is no such list."""
    at = body
    for step in key or ():
        at = cast("dict[str, Any]", at).get(step) if isinstance(at, dict) else None
    if isinstance(at, list):
        return cast("list[Any]", at)
    if key or not isinstance(at, dict):
        return None
    fields = cast("dict[str, Any]", at).values()
    lists = [cast("list[Any]", each) for each in fields if isinstance(each, list)]
    return lists[0] if len(lists) == 1 else None


def envelope_of(root: Element) -> dict[str, str]:
    """What is beside the rows of a reply in XML, by its names: below the root, or in AWS's
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


def _gather(entries: Mapping[str, Any], found: dict[str, Any], depth: int) -> None:
    """The fields of a reply and of the objects beside its rows, the outer ones first."""
    for name, value in entries.items():
        found.setdefault(name, value)
    for name, value in entries.items():
        letters = _letters(name)
        is_envelope = letters in ENVELOPES or ENVELOPE.fullmatch(letters) is not None
        if not is_envelope or depth >= _DEEPEST:
            continue
        if letters in ("next", "nextpage") and isinstance(value, dict):
            found.pop(name, None)
            _gather_next(cast("dict[str, Any]", value), found)
        elif letters.endswith(("links", "link")) and isinstance(value, list):
            _gather_relations(cast("list[Any]", value), found)
        elif isinstance(value, dict):
            found.pop(name, None)
            inner = cast("dict[str, Any]", value)
            if letters == "page":
                inner = {_NUMBERED.get(key, key): each for key, each in inner.items()}
                if inner.get("after"):
                    found["next_after"] = inner["after"]
            if letters == "cursors" and "before" in {_letters(key) for key in inner}:
                # Both ways of this page: that there is a token does not say that there is a page.
                inner = {f"cursor_{key}": each for key, each in inner.items()}
            elif letters in _AFTER and inner.get("after"):
                found["next_after"] = inner["after"]
            _gather(inner, found, depth + 1)


_NUMBERED: Final = {"total": "totalpages", "count": "totalpages"}
"""In an object `page`, a total is one of pages where there is no other."""


_NEXT_FIELDS: Final = (
    "after", "cursor", "token", "page", "offset", "marker", "startingafter",
)  # fmt: skip


def _gather_next(value: Mapping[str, Any], found: dict[str, Any]) -> None:
    """An object `next`: an address, or the token of the next page."""
    for name, each in value.items():
        letters = _letters(name)
        if letters in ("href", "url", "uri", "link"):
            found["next"] = each
        elif letters in _NEXT_FIELDS and each not in (None, ""):
            found[f"next_{letters}"] = each


def _gather_relations(links: list[Any], found: dict[str, Any]) -> None:
    """A list of links with what each is to this page."""
    for each in links:
        if not isinstance(each, dict):
            continue
        link = {_letters(name): value for name, value in cast("dict[str, Any]", each).items()}
        if "next" in [str(link.get(name)).lower() for name in ("rel", "relation")]:
            found["next"] = link.get("href") or link.get("url") or link.get("uri")


_OF_VENDOR: Final = re.compile(
    r"-(next-?(?:page(?:-?token)?|token|cursor|marker)|continuation-?token|after|before)$"
)
"""How the name of a header ends that a provider begins with its own."""


def _of_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in headers.items():
        key = re.sub(r"^x-(?:wp-|ms-)?", "", name.lower())
        letters = _letters(key)
        if letters == "pagination" and text.lstrip()[:1] == "{":
            try:
                entries: Any = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                continue
            _gather(entries, found, 0)
        elif key == "content-range" and (span := _RANGE.fullmatch(text)):
            found |= {"offset": int(span[1]), "totalcount": int(span[3])}
        elif (
            key != name.lower() and letters in (*PAGES, *LAST_PAGES, *TOTALS, *MORE, *SIZES[:7])
        ) or letters in (
            "totalcount",
            "totalpages",
            "nextpage",
            "nextcursor",
            "nexttoken",
            "hasmore",
            "continuation",
            "continuationtoken",
            "nextpagetoken",
            "nextrange",
            "aftercursor",
            "lastpage",
            "islastpage",
        ):
            found[letters] = int(text) if _NUMBER.fullmatch(text.strip()) else text.strip()
        elif of_vendor := _OF_VENDOR.search(key):
            found.setdefault(_letters(of_vendor[1]), text.strip())
    return found


class _Reply:
    """A reply's fields beside its rows, and the parameters that could ask for more."""

    def __init__(self, method: Method, found: Mapping[str, Any], asked: AskedPage) -> None:
        self._found = found
        self._named: dict[str, Any] = {}
        for name, value in found.items():
            self._named.setdefault(_letters(name), value)
        self._asked = asked
        self.is_guessed = False
        self._parameters = {
            _letters(each.wire_name): each for each in method.parameters if each.place in _PLACES
        }
        self._given = {
            _letters(name): value for name, value in parse_qsl(urlsplit(asked.url).query)
        }
        self._reads = method.http_verb in ("GET", "HEAD")
        self._lists = asked.members is not None
        """A thing may name a next one as well, which is no page of it."""

    def read(self, *, counts: bool) -> UsualPages:
        is_cut = self._flag()
        if is_cut is False:
            return _WHOLE
        address = self._address()
        if address is not None and self._reads:
            return UsualPages((), True, address)
        values = dict(self._tokens(is_cut))
        left = any(self._named.get(name) for name in LEFT)
        says_more = bool(is_cut or values or address is not None or left or self._has_token())
        is_counted = False
        if not values and self._asked.is_counted and counts and not self._is_ended():
            name, value, is_left = self._counted(is_cut)
            says_more = says_more or is_left
            if name is not None:
                values[name], is_counted = value, True
        return UsualPages(
            tuple([(self._parameters[name], value) for name, value in values.items()]),
            says_more,
            is_counted=is_counted,
            is_guessed=self.is_guessed,
        )

    def _flag(self) -> bool | None:
        for name in MORE:
            if (said := _truth(self._named.get(name))) is not None:
                return said
        for name in LAST:
            if (said := _truth(self._named.get(name))) is not None:
                return not said
        if self._lists and (
            any(_truth(self._named.get(name)) is False for name in DONE)
            or any(_truth(self._named[name]) for name in self._named if MORE_OF.fullmatch(name))
        ):
            return True
        return None

    def _address(self) -> str | None:
        if not self._lists:
            return None
        for name in (*ADDRESSES, *filter(ADDRESS.fullmatch, self._named)):
            value = self._named.get(name)
            if isinstance(value, str) and _is_address(value):
                return value
        return None

    def _is_ended(self) -> bool:
        """Whether the reply has a place for what comes next, and nothing in it."""
        return any(
            name in self._named and self._named[name] in (None, "", False)
            for name in (*ADDRESSES, "nextcursor", "nexttoken", "nextpagetoken", "nextoffset")
        )

    def _has_token(self) -> bool:
        """Whether something names the next page that no parameter takes."""
        if self._asked.members and (
            # On the first page alone nothing is before it.
            (self._named.get("cursorafter") and self._named.get("cursorbefore", "") in (None, ""))
            or any(isinstance(self._named.get(name), dict) for name in PARAMETERS)
            or any(name.startswith("lastevaluated") and self._named[name] for name in self._named)
        ):
            return True
        return (
            self._lists
            and any(
                isinstance(value, (str, int))
                and not isinstance(value, bool)
                and str(value).lower() not in NO_TOKENS
                and not LATER.fullmatch(name)
                and (
                    name in ADDRESSES
                    or ADDRESS.fullmatch(name)
                    or (name.startswith("next") and _is_token(name[4:]))
                )
                for name, value in self._named.items()
            )
        ) or any(self._echoed(name) for name in self._named)

    def _echoed(self, name: str) -> str | None:
        """The token of the next page in a field that is called as the parameter: one that was not
        asked with, of a list that names nothing else as next."""
        value = self._named.get(name)
        if (
            name not in ECHOED
            or not isinstance(value, str)
            or not value
            or (name == "after" and "before" not in self._named and name not in self._parameters)
            or _number(value) is not None
            or not self._asked.members
            or value == self._given.get(name)
            or any(each.startswith(("next", "prev")) for each in self._named)
        ):
            return None
        return value

    def _tokens(self, is_cut: bool | None) -> Iterator[tuple[str, Any]]:
        """The names of parameters, less what is no letter, and the values for the next page."""
        parameters = self._parameters
        end = self._named.get("endcursor")
        name = self._taker(("after", "cursor"))
        if isinstance(end, str) and end and is_cut and name is not None:
            yield name, end
            return
        name = self._taker(("startingafter",))
        for group in PARAMETERS:
            inner = self._named.get(group)
            if isinstance(inner, dict) and self._lists:
                given = {_letters(key): each for key, each in cast("dict[str, Any]", inner).items()}
                named = [(key, each) for key, each in given.items() if key in parameters]
                yield from named
                if named:
                    return
        last = self._last_id()
        if is_cut and name is not None and last is not None:
            yield name, last
            return
        for field, value in self._found.items():
            if isinstance(value, bool) or not isinstance(value, (str, int, dict)) or not value:
                continue
            if isinstance(value, str) and "://" in value:
                continue  # a link, and no token
            for wanted in self._takers(field, value, is_cut):
                parameter = parameters.get(wanted)
                if parameter is None or (isinstance(value, dict) and parameter.place != "body"):
                    continue
                if _letters(field) == wanted == "marker" and parameter.wire_name != field:
                    continue  # S3 repeats the `marker` that it was asked with as `Marker`
                yield wanted, value
                break

    def _takers(self, field: str, value: Any, is_cut: bool | None) -> tuple[str, ...]:
        """The parameters that may take the value of a field for the next page."""
        key = _letters(field)
        if LATER.fullmatch(key) or str(value).lower() in NO_TOKENS:
            return ()
        if key == "next" or (key.startswith("next") and _is_token(key[4:])):
            own = (key, key[4:]) if key != "next" else ()
            if key == "nextid":  # `id` chooses a thing
                own = (key, "afterid", "startid", "fromid", "sinceid", "lastid")
            if isinstance(value, str) and _is_address(value):
                return ()
            if key == "nextafter":
                own = AFTERS
            others = TOKENS
            if str(value).isdigit():
                others = (*TOKENS, *PAGERS, *OFFSETS[:4])
                if key in ("nextpage", "nextoffset"):  # a place in the list, and no token
                    others = PAGERS if key == "nextpage" else OFFSETS
            one = [each for each in others if each in self._parameters]
            fitting = [each for each in own if each in self._parameters]
            return tuple(fitting) or (tuple(one) if len(one) == 1 and self._lists else ())
        if key == "cursorafter" and self._asked.members:
            return ("after", "cursor")
        if is_cut is not False and self._echoed(key) is not None:
            if key == "aftercursor":
                return (key, *AFTERS)
            return (key, *AFTERS[1:]) if key in ("cursor", "after") else (key,)
        if key.startswith("lastevaluated"):
            return (f"exclusivestart{key.removeprefix('lastevaluated')}",)
        if key == "marker" and is_cut:
            return ("marker",)
        if key == "continuationtoken" and is_cut is None:
            return ("continuationtoken",)  # where there is a flag, this repeats what was asked with
        if key == "continuation" and is_cut is not False:
            return ("continuation", "continuationtoken")
        if key == "lastid" and is_cut:
            return (key, "after", "afterid", "startingafter")
        return ()

    def _taker(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if name in self._parameters), None)

    def _offset_taker(self) -> str | None:
        for name in OFFSETS:
            parameter = self._parameters.get(name)
            if parameter is None:
                continue
            if name not in MAYBE_TIMES or parameter.schema.get("type") == "integer":
                return name
        return None

    def _first_page(self, pager: str) -> int | None:
        """The number of a parameter's first page, if the document says: some count from 0, and one
        that is taken wrongly is left out or comes twice."""
        schema = self._parameters[pager].schema
        found = [each for each in map(schema.get, ("default", "minimum")) if each in (0, 1)]
        return found[0] if found else None

    def _last_id(self) -> Any:
        """The id of the list's last member."""
        members = self._asked.members
        last = members[-1] if members else None
        value = cast("dict[str, Any]", last).get("id") if isinstance(last, dict) else None
        return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None

    def _counted(self, is_cut: bool | None) -> tuple[str | None, Any, bool]:
        """The parameter and its value for what the counts of a reply say is left, and whether
        anything is."""
        members = None if self._asked.members is None else len(self._asked.members)
        if members == 0:
            # What a total counts may be more than what this caller may see.
            return None, None, False
        page, last = self._number(PAGES), self._number(LAST_PAGES)
        pager = self._taker(PAGERS)
        if page is None and pager is not None and pager not in self._named:
            page = self._asked_number((pager,))
            if page is None and self._asked.is_first:
                page = self._first_page(pager)
                if page is None and self._goes_on(is_cut, last, members):
                    # The first page again if they count from 1, and the second if from 0.
                    self.is_guessed = True
                    return pager, 1, True
        if page is not None and last is not None:
            if page >= last:
                return None, None, bool(is_cut)
            return pager, page + 1, True
        if last is not None and last > 1 and self._asked.is_first and not self._asks_further():
            return None, None, True
        total = self._total()
        offset_name = self._offset_taker()
        offset = self._number(OFFSETS)
        if offset is None and offset_name is not None:
            offset = self._asked_number((offset_name,))
            if offset is None and self._asked.is_first:
                offset = 1 if offset_name == "startindex" else 0
        if members is not None and offset is not None and (total is not None or is_cut):
            # Laravel's `from` and `to` count from 1, and no parameter takes them.
            spans = offset_name is None and "from" in self._named and "to" in self._named
            begins = 1 if spans or "startindex" in (offset_name, *self._named) else 0
            begins = min(begins, offset)
            if total is not None and offset - begins + members >= total and not is_cut:
                return None, None, False
            if offset_name is not None:
                return offset_name, offset + members, True
            if pager is None:
                return None, None, True
        if page is not None and pager is not None and (total is not None or is_cut):
            size = self._asked_number(SIZES) or self._number(SIZES[:7])
            first = self._first_page(pager)
            # Counted from 1 there are fewer before it: that is the end whatever they count from.
            seen = (
                (page - (1 if first is None else first)) * size + (members or 0) if size else None
            )
            if page == first and seen is None:
                seen = members
            if total is not None and seen is not None and seen >= total and not is_cut:
                return None, None, False
            return pager, page + 1, True
        is_left = (
            total is not None
            and members is not None
            and self._asked.is_first
            and not self._asks_further()
            and total > members
        )
        return None, None, bool(is_cut or is_left)

    def _goes_on(self, is_cut: bool | None, last: int | None, members: int | None) -> bool:
        """Whether something says that the first page is not the only one."""
        total = self._total()
        more = total is not None and members is not None and total > members
        return bool(is_cut) or more or (last is not None and last > 1)

    def _total(self) -> int | None:
        """How many members the whole list has. `total` and `count` may count something else, where
        nothing says that the list has pages."""
        exact = self._named.get("total")
        if isinstance(exact, dict):  # Elasticsearch says how exact it is
            return _number(cast("dict[str, Any]", exact).get("value"))
        pages = any(
            name in self._named or name in self._parameters
            for name in (*OFFSETS, *SIZES[:7], *PAGES[:3], "next", "previous")
        )
        for name in TOTALS if pages else TOTALS[:CERTAIN_TOTALS]:
            value = self._named.get(name)
            if (number := _number(value)) is not None:
                return number
        return None

    def _asks_further(self) -> bool:
        """Whether the caller has asked for another page than the first."""
        names = (*OFFSETS, *PAGERS, *TOKENS)
        return any(name in self._given for name in names)

    def _number(self, names: tuple[str, ...]) -> int | None:
        found = (_number(self._named.get(name)) for name in names)
        return next((each for each in found if each is not None), None)

    def _asked_number(self, names: tuple[str, ...]) -> int | None:
        found = (_number(self._given.get(name)) for name in names)
        return next((each for each in found if each is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else None


def _is_token(name: str) -> bool:
    return bool(name) and TOKEN.fullmatch(name) is not None


def _is_address(value: str) -> bool:
    return "://" in value or value[:1] in ("/", "?") or value.startswith("./")


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def _letters(name: str) -> str:
    """A name without what is no letter, in small ones."""
    return re.sub(r"[^a-z]", "", name.lower())
