"""URLs of Datalevin's servers, and what is said where none answers. No package has a server."""

from __future__ import annotations

import pytest

from support.free_ports import claim_port
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.products.datalog.engine.errors import Fault, translate
from tidegate.products.datalog.engine.url import locate, path_of, place_of
from tidegate.products.datalog.engine.workers import discreet


def test_a_password_is_in_no_text_that_people_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTS_PASSWORD", "s/cret")
    place = place_of("dtlv://ann:${ENV:FACTS_PASSWORD}@db.example/facts")
    assert place.shown == "dtlv://ann@db.example:8898/facts"
    assert "cret" not in place.shown
    for said in (f"cannot open {place.name}", "wrong password s/cret", "s%2Fcret"):
        fault = discreet(Fault(":tool-error", said), place)
        assert "cret" not in str(translate(fault, place.shown, is_remote=True))


@pytest.mark.parametrize(
    "url",
    [
        *("dtlv://", "dtlv://host", "dtlv:///facts", "dtlv://host/facts?x=1", "dtlv://host/a/b"),
        *("dtlv://host:port/facts", "datalevin://", "datalevin:///a?b=1", "datalevin:///a%00b"),
    ],
)
def test_what_names_no_place_is_refused(url: str) -> None:
    with pytest.raises(TidegateError) as caught:
        place_of(url)
    assert caught.value.code is Code.SOURCE_URL


def test_a_url_has_an_engine_and_a_place_in_listings() -> None:
    assert engine_of("datalevin:///data/facts") == ("datalevin", "datalog")
    assert engine_of("dtlv://ann@db.example/facts") == ("datalevin", "datalog")
    assert path_of("datalevin:///data/my%20facts") == "/data/my facts"
    assert path_of("dtlv://db.example/facts") is None
    where = locate("dtlv://ann@db.example/facts")
    assert (where.host, where.port, where.database, where.user) == (
        *("db.example", 8898, "facts", "ann"),
    )


async def test_a_server_that_does_not_answer_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FACTS_PASSWORD", "hunter2")
    port = claim_port()
    url = f"dtlv://ann:${{ENV:FACTS_PASSWORD}}@127.0.0.1:{port}/facts"
    with pytest.raises(TidegateError) as caught:
        await open_engine(Source("1", "facts", url, "datalevin", "datalog"))
    error = caught.value
    if error.code is Code.ENGINE_MISSING:
        pytest.skip("the extra `datalog` is not installed")
    assert error.code is Code.SOURCE_UNREACHABLE
    assert f"127.0.0.1:{port}" in error.message
    assert "hunter2" not in f"{error.message}{error.hint}{error.details}"
