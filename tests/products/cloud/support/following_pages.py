"""The request of a following page alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.http.paging import Resolve, find_following
from tidegate.products.cloud.http.requests import ApiRequest


def next_request(
    method: Method,
    request: ApiRequest,
    headers: Mapping[str, str],
    body: Any,
    resolve: Resolve = lambda address, url: urljoin(url, address),
) -> ApiRequest | None:
    """The request of the page after that which `request` gave, a list's first; None: it was the
    last. Raises: as `find_following`."""
    return find_following(method, request, headers, body, resolve).request
