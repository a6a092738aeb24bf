"""The contract between the engine and what knows the credentials of providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from tidegate.cloud.model import Provider
from tidegate.cloud.requests import ApiRequest


class SigningTarget(msgspec.Struct, frozen=True):
    """Whom a request is for: `values` are the SQL values that it was built from, by the names of
    parameters, such as `region`; `service` is the service's name in the provider's document."""

    provider: Provider
    service: str
    values: Mapping[str, Any]


class RequestSigner(Protocol):
    """Adds a provider's credential to requests."""

    async def sign(self, request: ApiRequest, target: SigningTarget) -> ApiRequest:
        """The request with its credential, resolved now. Called once for each attempt and page.

        Nothing is put into an error or a record. `request.url` is the document's, also where a
        setting has the request sent to another address.
        Raises: TidegateError PROVIDER_REFUSED that names the variable, file or profile that is
        missing or expired; POLICY_DENIED if the credential may not go to that host.
        """
        ...

    def identity(self, provider: Provider) -> str:
        """What keeps results of one credential apart from those of another: the same text for the
        same credential, from which nothing of it can be learnt."""
        ...


class NoCredentials:
    """For providers that want none (`RequestSigner`)."""

    async def sign(self, request: ApiRequest, target: SigningTarget) -> ApiRequest:
        return request

    def identity(self, provider: Provider) -> str:
        return ""
