"""The settings of cloud providers: their registry, logins, accounts and hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tidegate.config.addresses import check_private_url, is_this_machine, parse_http_url
from tidegate.config.errors import invalid
from tidegate.config.sections import Section, SectionSettings
from tidegate.products.cloud.auth_settings import read_auth

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_HOST_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?|\[[0-9a-f:]+\]")


class CloudAccount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several accounts at a provider. `auth` is its login, `groups` the groups it is in,
    `regions` those that `region = '*'` means for it."""

    auth: dict[str, Any] = {}
    groups: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()


class CloudProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What counts for one provider. `auth` takes the place of the login in its document. `hosts`
    are hosts that a statement may name where the document leaves the host open: `*.example.com`
    is every host below that."""

    auth: dict[str, Any] = {}
    accounts: dict[str, CloudAccount] = {}
    hosts: tuple[str, ...] = ()


class CloudSettings(Section, frozen=True, forbid_unknown_fields=True):
    """The providers that statements of a `cloud` source reach.

    `registry` is the address of a registry, https or `file://`; documents are kept below the state
    directory. `verify` accepts signed documents only; `certificate` is the file with the
    certificate that they are checked with. `ca_file` has certificate authorities that are trusted
    for the registry and all providers in addition. `private_hosts` are hosts on loopback or in
    private networks that providers may be at. `endpoints` sends requests that begin with one URL,
    such as `https://*.amazonaws.com`, to another one on this machine, such as a server for tests.
    `cache` is the directory where documents are kept in a form that is read faster (default: in the
    state directory).
    """

    NAME: ClassVar[str] = "cloud"

    registry: str | None = None
    verify: bool = True
    certificate: str | None = None
    ca_file: str | None = None
    providers: dict[str, CloudProvider] = {}  # noqa: RUF012 - msgspec copies it
    private_hosts: tuple[str, ...] = ()
    endpoints: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.registry is not None and not self.registry.startswith("file://"):
            check_private_url(self.registry, "cloud.registry")
        for name, provider in self.providers.items():
            _check_provider(name, provider)
        for host in self.private_hosts:
            if not _HOST_PATTERN.fullmatch(host):
                raise invalid(f"`cloud.private_hosts` has `{host[:80]}`, which is not a host.")
        for prefix, target in self.endpoints.items():
            _check_endpoint(prefix, target)


def _check_provider(name: str, provider: CloudProvider) -> None:
    place = f"`cloud.providers.{name[:60]}`"
    if not _NAME.fullmatch(name):
        raise invalid(f"{place} is not the name of a provider.")
    read_auth(provider.auth, place)
    for host in provider.hosts:
        if not _HOST_PATTERN.fullmatch(host):
            raise invalid(
                f"{place} has the host `{host[:80]}`, which is not a host.",
                hint="Write `api.example.com`, or `*.example.com` for all hosts below it.",
            )
    for account, settings in provider.accounts.items():
        if not _NAME.fullmatch(account):
            raise invalid(f"{place} has an account with the name `{account[:60]}`.")
        read_auth(settings.auth, f"the account `{account}` of {place}")
        for group in settings.groups:
            if not _NAME.fullmatch(group) or group in provider.accounts:
                raise invalid(
                    f"{place} has a group `{group[:60]}`, which is no name or that of an account."
                )


def _check_endpoint(prefix: str, target: str) -> None:
    try:
        known = parse_http_url(prefix.replace("://*.", "://", 1))
        new = parse_http_url(target)
    except ValueError:
        raise invalid(f"`cloud.endpoints` has `{prefix[:80]}`, and one side is no URL.") from None
    if not known.is_plain or not new.is_plain or not is_this_machine(new.host):
        raise invalid(
            f"`cloud.endpoints` sends `{prefix[:80]}` to what is not on this machine.",
            hint="Map the beginning of a URL to http://127.0.0.1:PORT.",
        )


def settings_text(config: SectionSettings, directory: Path | None) -> str:
    """The section as the option `settings` of a source, JSON; empty if it says nothing. The cache
    has a place in the state's `directory`, if there is one, unless the section names another."""
    section = config.section(CloudSettings)
    if section.cache is None and directory is not None:
        section = msgspec.structs.replace(section, cache=str(directory / "cloud-cache"))
    return "" if section == CloudSettings() else msgspec.json.encode(section).decode()
