"""No password that an engine would read in a URL gets past the check for literal secrets."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.engines.common.url import parse_server_url
from tidegate.errors import Code, TidegateError
from tidegate.secrets.url_logins import refuse_literal

PIECES = [":", "@", "/", "?", "#", "[", "]", ",", "%40", "%3A", "ann", "pw", "db", "5432", "::1",
          "${ENV:PW}", "${FILE:/run/pw}", "${", "}", "password=", "&", " ", "\\", "é"]  # fmt: skip


@given(st.sampled_from(["postgresql", "mysql", "postgresql+psycopg"]),
       st.lists(st.sampled_from(PIECES), max_size=12).map("".join))  # fmt: skip
@example("postgresql", "ann:p?w@db/shop")
@example("postgresql", "ann:p#w@db/shop")
@example("postgresql", "ann:p/w@db/shop")
@example("postgresql", "ann@b:pw@db/shop")
@settings(max_examples=2_000, deadline=None)
def test_a_password_that_would_be_sent_is_refused_in_a_saved_url(scheme: str, rest: str) -> None:
    url = f"{scheme}://{rest}"
    try:
        password = parse_server_url(url).password
    except TidegateError:
        return
    if re.sub(r"\$\{[A-Za-z]*:[^}]*\}", "", password):
        with pytest.raises(TidegateError) as refusal:
            refuse_literal(url)
        assert refusal.value.code is Code.SOURCE_URL
        assert password not in refusal.value.message
