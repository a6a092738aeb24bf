"""How a reference to OpenBao or Vault is written."""

from __future__ import annotations

import pytest

from tidegate.config.loading import load
from tidegate.errors import TidegateError
from tidegate.products.vault.references import VaultReference, parse_name
from tidegate.secrets.references import check_references


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("secret/data/shop#password", VaultReference("secret/data/shop", "password", "data")),
        ("a/b/data/c/d#key", VaultReference("a/b/data/c/d", "key", "data")),
        ("database/creds/ro#username", VaultReference("database/creds/ro", "username", "creds")),
        (
            "database/static-creds/ro#password",
            VaultReference("database/static-creds/ro", "password", "static-creds"),
        ),
    ],
)
def test_a_path_of_the_api_and_a_field(name: str, meant: VaultReference) -> None:
    assert parse_name(name) == meant
    check_references(f"postgresql://u:${{VAULT:{name}}}@db/x")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("${VAULT:secret/shop#password}", "Did you mean `${VAULT:secret/data/shop#password}`?"),
        ("${VAULT:secret/data/shop}", "Did you mean `${VAULT:secret/data/shop#password}`?"),
        ("${VAULT:/v1/secret/data/a#b}", "Did you mean `${VAULT:secret/data/a#b}`?"),
        ("${VAULT:secret#password}", "${VAULT:secret/data/PATH#FIELD}"),
        ("${VAULT:secret/data/../a#b}", "${VAULT:secret/data/PATH#FIELD}"),
        ("${VAULT:secret/data/a?version=1#b}", "${VAULT:secret/data/PATH#FIELD}"),
        ("${VAULT:}", "${VAULT:secret/data/PATH#FIELD}"),
        ("${VALUT:secret/data/shop#a}", "Did you mean `${VAULT:secret/data/PATH#FIELD}`?"),
    ],
)
def test_a_wrong_form_is_an_error_that_says_the_right_one(written: str, said: str) -> None:
    with pytest.raises(TidegateError) as caught:
        check_references(f"postgresql://u:{written}@db/x")
    assert said in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('{"address": "http://vault:8200"}', "vault.address"),
        ('{"token": "s.hunter2"}', "`vault.token` is no reference"),
        ('{"token": "${VAULT:secret/data/t#t}"}', "`vault.token` is no reference"),
        ('{"approle": {"role_id": "r", "secret_id": "hunter2"}}', "secret_id` is no reference"),
        ('{"token": "${ENV:T}", "kubernetes": {"role": "gate"}}', "several logins"),
    ],
)
def test_settings_that_would_give_a_token_away_are_refused(settings: str, said: str) -> None:
    with pytest.raises(TidegateError) as caught:
        load(f'{{"vault": {settings}}}')
    assert said in caught.value.message and "hunter2" not in str(caught.value)
