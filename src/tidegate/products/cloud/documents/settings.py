"""Reads what a document's `config` or `x-stackQL-config` says of requests and paging.

An algorithm that is not known is refused: a request that is built in another way than the document
says may do something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.errors import TidegateError
from tidegate.products.cloud.documents.model import Pagination, Settings
from tidegate.products.cloud.documents.tree import mapping, require_mapping
from tidegate.products.cloud.documents.yaml_reader import refused

BODY_NAMES: Final = ("naive", "naive_DesiredState")
REQUEST_TRANSLATIONS: Final = ("drop_double_underscore_params", "get_query_to_post_form_utf_8")
QUERY_TRANSPOSITIONS: Final = ("AWSCanonical",)
_REQUEST_PLACES: Final = ("query", "body", "header", "request")
_ADDRESSES: Final = ("link_header_next", "odata_next_link")
_ADDRESS: Final = {"key": "", "location": "request"}
_RESPONSE_PLACES: Final = ("body", "header")


def read_settings(config: Any, document: str) -> Settings:
    """The settings in `config`, a mapping or None. Raises: TidegateError DOCUMENT_INVALID."""
    if config is None:
        return Settings()
    entries = require_mapping(config, "a `config`", document)

    def algorithm(key: str, known: tuple[str, ...]) -> str:
        value = entries.get(key)
        if value is None:
            return ""
        name = mapping(value).get("algorithm", value)
        if name not in known:
            raise refused(document, f"`{key}` has an algorithm that is not known: {str(name)[:60]}")
        return str(name)

    return Settings(
        pagination=_pagination(entries.get("pagination"), document),
        body_names=algorithm("requestBodyTranslate", BODY_NAMES),
        request_translation=algorithm("requestTranslate", REQUEST_TRANSLATIONS),
        query_transposition=algorithm("queryParamTranspose", QUERY_TRANSPOSITIONS),
        retry=_optional_mapping(entries, "retry", document),
        pushdown=_optional_mapping(entries, "queryParamPushdown", document),
    )


def _pagination(value: Any, document: str) -> Pagination | None:
    if value is None:
        return None
    problem = refused(document, f"the pagination `{str(value)[:120]}` is not known")
    entries = mapping(value)
    algorithm = entries.get("algorithm", "token")
    asked, answered = mapping(entries.get("requestToken")), mapping(entries.get("responseToken"))
    if algorithm in _ADDRESSES:
        # What the reply has is the address of the next page.
        algorithm, asked = "token", _ADDRESS
        answered = answered or {"key": "@odata.nextLink", "location": "body"}
    # Without a word of the request, or in a header, it is that as well.
    request = _token(asked or _ADDRESS, _REQUEST_PLACES, problem)
    response = _token(answered, _RESPONSE_PLACES, problem)
    is_plain = asked.get("encoding") == "none"
    if algorithm == "page_number":
        end = _token(entries.get("responseTerminator"), ("body",), problem)
        return Pagination("page_number", request[0], request[1], "body", response[1], end[1])  # type: ignore[arg-type]
    if algorithm != "token":
        raise problem
    return Pagination("token", *request, *response, is_plain=is_plain)  # type: ignore[arg-type]


def _token(value: Any, places: tuple[str, ...], problem: TidegateError) -> tuple[str, str]:
    """Its place and its key."""
    place, key = mapping(value).get("location"), mapping(value).get("key", "")
    if place not in places or not isinstance(key, str) or (not key and place != "request"):
        raise problem
    return str(place), key


def _optional_mapping(
    entries: Mapping[str, Any], key: str, document: str
) -> Mapping[str, Any] | None:
    value = entries.get(key)
    return None if value is None else require_mapping(value, f"`{key}`", document)
