"""Named accounts of a provider: which of them a statement's value means. Pure.

Every method of a provider with accounts has one parameter more, `account`. Its value is the name of
an account, of a group, or `*` for all. `region = '*'` is every region that an account lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Method, Parameter, Provider
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.settings import CloudAccount

ALL: Final = "*"
_NAMES: Final = ("account", "cloud_account", "tidegate_account")
"""Names of the parameter; the first that a resource has not for something else."""
_REGION: Final = "region"

Values = tuple[tuple[str, Any], ...]
"""Values of a call by the names of parameters, sorted."""


def account_parameter(taken: set[str]) -> Parameter:
    """The parameter; `taken` are the folded names of a resource's parameters and columns."""
    name = next((each for each in _NAMES if each not in taken), _NAMES[-1])
    return Parameter(
        name=name,
        wire_name=name,
        place="account",
        is_required=False,
        schema={"type": "string"},
        description="An account of the provider, a group of accounts, or * for all.",
    )


def account_of(method: Method, values: Mapping[str, Any]) -> str:
    """The account that a call is for; empty: the provider's own login."""
    name = _name_of(method)
    found = (value for key, value in values.items() if folded(key) == name)
    value = next(found, None) if name else None
    return "" if value is None else str(value)


def spread(provider: Provider, method: Method, values: Values) -> list[Values]:
    """The calls that one call means: one for each account and region that it means.

    Raises: TidegateError ARGUMENT_INVALID for an account that is not known, or `*` where no regions
        are listed.
    """
    name = _name_of(method)
    given = {folded(key): value for key, value in values}
    account = given.get(name) if name else None
    every_region = given.get(_REGION) == ALL
    if account is None and not every_region:
        return [values]
    names = [""] if account is None else members(provider, str(account))
    calls: list[Values] = []
    for each in names:
        regions = _regions(provider, each) if every_region else [given.get(_REGION)]
        for region in regions:
            new = {name: each, _REGION: region}
            calls.append(tuple((key, new.get(folded(key), value)) for key, value in values))
    return calls


def is_spread(provider: Provider, parameter: Parameter) -> bool:
    """Whether one value of the parameter may mean several."""
    return bool(provider.accounts) and (
        parameter.place == "account" or folded(parameter.name) == _REGION
    )


def members(provider: Provider, wanted: str) -> list[str]:
    """The accounts that a name means, in the order of the settings.

    Raises: TidegateError ARGUMENT_INVALID.
    """
    accounts = provider.accounts
    if wanted == ALL:
        return list(accounts)
    if wanted in accounts:
        return [wanted]
    found = [name for name, each in accounts.items() if wanted in each.groups]
    if found:
        return found
    groups = sorted({group for each in accounts.values() for group in each.groups})
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The provider {provider.name} has no account or group {wanted[:80]}.",
        hint=f"Its accounts and groups are: {', '.join([*accounts, *groups])[:400]}.",
    )


def _regions(provider: Provider, account: str) -> list[str]:
    regions = provider.accounts.get(account, CloudAccount()).regions
    if not regions:
        whose = f"the account {account}" if account else f"the provider {provider.name}"
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`region = '*'` needs the regions of {whose}, and none are set.",
            hint=f"Set `cloud.providers.{provider.name}.accounts.NAME.regions`, and name an "
            "account.",
        )
    return list(regions)


def _name_of(method: Method) -> str:
    return next((each.name for each in method.parameters if each.place == "account"), "")
