"""Settings of the server that keeps secrets: the section `vault`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tidegate.config.addresses import check_private_url
from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.secrets.references import READ_ANYWHERE, check_references, is_reference

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class AppRoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A login by AppRole: `role_id`, and a reference to the `secret_id`. `mount` is where the
    method is."""

    role_id: str
    secret_id: str
    mount: str = "approle"


class KubernetesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A login by the service account of the pod, whose token is in `token_file`. `mount` is where
    the method is."""

    role: str
    token_file: str = SERVICE_ACCOUNT
    mount: str = "kubernetes"


class VaultSettings(Section, frozen=True, forbid_unknown_fields=True):
    """The OpenBao or Vault that `${VAULT:PATH#FIELD}` refers to.

    `address` is its URL, https except on this machine; else it is in `BAO_ADDR` or `VAULT_ADDR`.
    `token` is a reference to a token, `approle` or `kubernetes` a login; without any of them the
    token is in `BAO_TOKEN` or `VAULT_TOKEN`. `namespace` and `ca_file`, a PEM file with the
    authority to trust, are as for its own command. It has `timeout_s` to answer.
    """

    NAME: ClassVar[str] = "vault"

    address: str | None = None
    token: str | None = None
    approle: AppRoleSettings | None = None
    kubernetes: KubernetesSettings | None = None
    namespace: str | None = None
    ca_file: str | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0

    def __post_init__(self) -> None:
        if self.address is not None:
            check_private_url(self.address, "vault.address")
        logins = (self.token, self.approle, self.kubernetes)
        if sum(each is not None for each in logins) > 1:
            raise invalid(
                "`vault` has several logins.",
                hint="Set one of `vault.token`, `vault.approle` and `vault.kubernetes`.",
            )
        _check_secret("vault.token", self.token)
        if self.approle is not None:
            _check_secret("vault.approle.secret_id", self.approle.secret_id)

    def check(self, config: Config) -> None:
        """Nothing more: what it names is there when a secret is read."""


def _check_secret(setting: str, text: str | None) -> None:
    if text is None:
        return
    if not is_reference(text, READ_ANYWHERE) or text.startswith("${VAULT:"):
        raise invalid(
            f"`{setting}` is no reference to a secret outside of the vault.",
            hint="Write ${FILE:/path} or ${ENV:NAME}.",
        )
    check_references(text, READ_ANYWHERE)
