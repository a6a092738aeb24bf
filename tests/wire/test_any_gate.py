"""Whatever a caller does at one of two processes, its next call goes on at the other."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.gate_pair import KINDS, GatePair, gate_pair


@pytest.fixture(scope="module", params=KINDS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatePair]:
    with gate_pair(request.param, tmp_path_factory.mktemp("pair")) as made:
        yield made


def test_the_rest_of_a_result_is_shown_by_either_of_them(pair: GatePair) -> None:
    client = pair.client()
    found = json.loads(client.call(1, "query", sql="SELECT id FROM items ORDER BY id", max_rows=7))
    shown, pages = list(found["rows"]), 0
    while handle := found.get("more"):
        pages += 1
        assert pages < 20
        found = json.loads(client.call(1 + pages % 2, "more", handle=handle, max_rows=90))
        shown += found["rows"]
    assert shown == [[n] for n in range(500)]
    assert pages == 6


def test_a_result_that_is_too_large_names_the_process_that_has_it(pair: GatePair) -> None:
    text = "SELECT id, printf('%.4000c', 'x') AS x FROM items"
    client = pair.client()
    handle = json.loads(client.call(1, "query", sql=text, max_rows=1))["more"]
    refused = client.call(2, "more", handle=handle)
    assert refused.startswith("result.gone: ")
    assert ("worker 1" if pair.kind == "workers" else f"the gate {pair.gate_id(1)}") in refused
    assert len(json.loads(client.call(1, "more", handle=handle, max_rows=2))["rows"]) == 2


def test_rows_that_were_read_under_other_settings_are_not_shown_elsewhere(pair: GatePair) -> None:
    client, other = pair.client(), pair.client()
    other.headers["Authorization"] = f"Bearer {pair.make_token()}"
    handle = json.loads(client.call(1, "query", sql="SELECT id FROM items", max_rows=5))["more"]
    for at in (1, 2):
        assert other.call(at, "more", handle=handle).startswith("result.gone: ")
    assert json.loads(client.call(2, "more", handle=handle, max_rows=5))["rows"]
