"""The token of bridges: a share asked for is never more than the settings say now."""

from __future__ import annotations

import pytest

from tidegate.config.model import BridgeSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import SEPARATOR, BridgeTokens, Share, bearer_for
from tidegate.model.actors import Actor, Scope
from tidegate.model.sources import Source

SOURCES = tuple(
    Source(name, name, "", "sqlite", "sqlite", tags=tags)
    for name, tags in (("a", ("dev",)), ("b", ("dev", "eu")), ("c", ()))
)


def admission(settings: BridgeSettings) -> BridgeTokens:
    return BridgeTokens(settings, lambda name, details: None, sources=lambda: SOURCES)


def admitted(settings: BridgeSettings, share: Share) -> Actor:
    authenticator = admission(settings)
    return authenticator.verify(bearer_for(authenticator.renew()[0], share), "127.0.0.1")


@pytest.mark.parametrize(
    ("settings", "share", "seen"),
    [
        (BridgeSettings(), Share(sources=("a", "x")), {"a", "x"}),
        (BridgeSettings(sources=("a", "b")), Share(sources=("b", "c")), {"b"}),
        (BridgeSettings(tags=("dev",)), Share(sources=("b", "c")), {"b"}),
        (BridgeSettings(sources=("c",), tags=("eu",)), Share(sources=("a", "b", "c")), {"b", "c"}),
        (BridgeSettings(sources=()), Share(sources=("a",)), set()),
        (BridgeSettings(sources=("a",)), Share(sources=()), set()),
        (BridgeSettings(sources=("a",)), Share(tables=("t",)), {"a"}),
    ],
)
def test_it_sees_what_both_admit(settings: BridgeSettings, share: Share, seen: set[str]) -> None:
    actor = admitted(settings, share)
    assert (actor.sources, actor.tags) == (seen, None)


def test_tags_of_the_settings_stay_where_no_source_is_asked_for() -> None:
    actor = admitted(BridgeSettings(tags=("dev",)), Share(scope="readOnly"))
    assert (actor.sources, actor.tags) == (None, {"dev"})


@pytest.mark.parametrize(
    ("settings", "share", "tables"),
    [
        (BridgeSettings(), Share(tables=("t",)), {"t"}),
        (BridgeSettings(tables=("t", "u")), Share(tables=("u", "v")), {"u"}),
        (BridgeSettings(tables=("t",)), Share(sources=("a",)), {"t"}),
        (BridgeSettings(tables=("t",)), Share(tables=()), set()),
    ],
)
def test_it_uses_the_tables_that_both_admit(
    settings: BridgeSettings, share: Share, tables: set[str]
) -> None:
    assert admitted(settings, share).tables == tables


@pytest.mark.parametrize("given", ["readOnly", "readWrite", "fullAccess"])
@pytest.mark.parametrize("asked", ["readOnly", "readWrite", "fullAccess"])
def test_its_scope_is_the_lesser(given: str, asked: str) -> None:
    order = ["readOnly", "readWrite", "fullAccess"]
    actor = admitted(BridgeSettings(scope=given), Share(scope=asked))  # type: ignore[arg-type]
    assert actor.scope is Scope(min(given, asked, key=order.index))


def test_shares_are_callers_of_their_own_and_stay_so_when_the_secret_changes() -> None:
    authenticator = admission(BridgeSettings())
    one, other = Share(tables=("t",)), Share(tables=("u",))
    ids = [
        [
            authenticator.verify(bearer_for(secret, share), "::1").id
            for share in (Share(), one, other)
        ]
        for secret in (authenticator.renew()[0], authenticator.renew()[0])
    ]
    assert ids[0] == ids[1] and len(set(ids[0])) == 3 and ids[0][0] == "bridge"


def test_new_settings_hold_for_a_secret_that_is_out() -> None:
    authenticator = admission(BridgeSettings(scope="readWrite"))
    secret, _ = authenticator.renew()
    authenticator.settings = BridgeSettings(sources=("a",))
    actor = authenticator.verify(secret, "127.0.0.1")
    assert (actor.scope, actor.sources) == (Scope.READ_ONLY, {"a"})


@pytest.mark.parametrize(
    "asked", ["x", "e30=e30", "bnVsbA", "W10", "eyJ4IjoxfQ", "eyJzY29wZSI6InJvb3QifQ", "é", "~"]
)
def test_a_share_that_cannot_be_read_is_no_token(asked: str) -> None:
    authenticator = admission(BridgeSettings())
    secret, _ = authenticator.renew()
    with pytest.raises(TidegateError) as caught:
        authenticator.verify(f"{secret}{SEPARATOR}{asked}", "127.0.0.1")
    assert caught.value.code is Code.AUTH_INVALID


def test_a_token_counts_from_this_machine_alone() -> None:
    authenticator = admission(BridgeSettings())
    secret = authenticator.renew()[0]
    for address in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"):
        authenticator.verify(secret, address)
    for address in ("10.0.0.5", "10.0.0.6", "::ffff:10.0.0.5", "", "localhost"):
        with pytest.raises(TidegateError):
            authenticator.verify(secret, address)
    authenticator.listens_at = "10.0.0.5"
    authenticator.verify(secret, "10.0.0.5")
    for address in ("10.0.0.6", "10.0.0.50", ""):
        with pytest.raises(TidegateError):
            authenticator.verify(secret, address)
