"""Reads secrets and takes accounts on lease from OpenBao or Vault, by the library hvac.

It runs on the threads of `secrets.readers`. A token of a login is kept in memory until half of its
time is over. An account on lease ends with the token that took it, so each is taken with a token
that was made for it, where there is a login.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.config.installation import add_command
from tidegate.errors import Code, TidegateError
from tidegate.products.vault.references import VaultReference, VaultRefusal, parse_name
from tidegate.products.vault.settings import VaultSettings
from tidegate.secrets.readers import Reading, unavailable

if TYPE_CHECKING:
    from tidegate.products.vault.server import VaultServer

_KIND = "VAULT"


class _Found(NamedTuple):
    """What is at a path. `ends_at`: when the account is removed; `give_back`: has it removed."""

    fields: Mapping[str, Any]
    ends_at: float | None = None
    give_back: Callable[[], None] | None = None


def read_all(names: Collection[str], settings: VaultSettings | None) -> Mapping[str, Reading]:
    """The secrets; those of one path come from one answer, so that a name and its password are of
    one account. Raises: TidegateError SECRET_UNAVAILABLE, ENGINE_MISSING."""
    try:
        from tidegate.products.vault.server import server_of  # with hvac, which takes its time
    except ImportError as missing:
        raise TidegateError(
            Code.ENGINE_MISSING,
            "A reference to a vault needs the package `hvac`.",
            hint=f"Run: {add_command('vault')}",
        ) from missing
    server = server_of(settings or VaultSettings())
    found: dict[str, _Found] = {}
    readings: dict[str, Reading] = {}
    for name in names:
        reference = parse_name(name)
        if reference is None:
            raise unavailable((_KIND, name), "it names no path and field")
        try:
            if reference.path not in found:
                found[reference.path] = _read(server, reference)
        except VaultRefusal as refusal:
            raise unavailable((_KIND, name), refusal.why, refusal.hint) from None
        readings[name] = _reading(name, reference, found[reference.path], server)
    return readings


def _read(server: VaultServer, reference: VaultReference) -> _Found:
    """Raises: VaultRefusal."""
    if reference.engine != "creds":
        answer = server.read(reference.path)
        data = answer.get("data")
        if reference.engine == "data":
            data = data.get("data") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - parsed JSON
        return _Found(_fields(data, server))  # pyright: ignore[reportUnknownArgumentType] - as above
    lease = server.lease(reference.path)
    return _Found(_fields(lease.answer.get("data"), server), lease.ends_at, lease.give_back)


def _fields(data: Any, server: VaultServer) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise VaultRefusal(f"{server.place} has nothing there, or what it had was deleted")
    return data  # pyright: ignore[reportUnknownVariableType] - parsed JSON


def _reading(name: str, reference: VaultReference, found: _Found, server: VaultServer) -> Reading:
    value = found.fields.get(reference.field)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        known = ", ".join(sorted(map(str, found.fields)))[:200]
        raise unavailable(
            (_KIND, name),
            f"{server.place} has no text in the field `{reference.field}` there",
            f"Fields there: {known}.",
        )
    return Reading(str(value), session_until=found.ends_at, give_back=found.give_back)
