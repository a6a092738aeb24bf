"""Every documented form of a URL is read by its engine as the place that a listing shows."""

import pytest
from msgspec import structs

from support.url_forms import FORMS, UNREADABLE_URLS
from tidegate.engines.common.url import UNREADABLE, parse_server_url
from tidegate.engines.registry import find, locate
from tidegate.errors import Code, TidegateError

SERVERS = ("postgres", "mysql", "mariadb")
OF_SERVERS = [url for url, _ in FORMS if url.startswith(SERVERS)]


@pytest.mark.parametrize(("url", "expected"), FORMS)
def test_a_documented_form_is_shown_as_what_it_names(url, expected):
    assert structs.astuple(locate(url))[: len(expected)] == expected


@pytest.mark.parametrize("url", UNREADABLE_URLS)
def test_a_url_that_cannot_be_read_is_shown_as_such(url):
    assert locate(url) == UNREADABLE


@pytest.mark.parametrize("url", OF_SERVERS)
def test_an_engine_reads_the_form_as_the_listing_does(url, monkeypatch):
    monkeypatch.setenv("PW", "se/cr@t:")
    if "${FILE:" in url:
        url = url.replace("${FILE:/run/secrets/a@b:c?d}", "${ENV:PW}")
    shown = locate(url)
    if find(url).engine == "postgres":
        from tidegate.engines.postgres.url import parse_conninfo

        url = url.partition("?ssh=")[0]
        read = parse_conninfo(url).parameters
        assert read.get("host", "") == shown.host
        assert read.get("port", "5432").partition(",")[0] == str(shown.port)
        assert read.get("dbname", "") == shown.database
        assert read.get("user", "") == shown.user
        assert read.get("password", "se/cr@t:") == "se/cr@t:"
    else:
        from tidegate.products.mysql.engine.url import parse_conninfo

        read = parse_conninfo(url)
        assert (read.socket or read.host, read.port) == (shown.host, shown.port)
        assert (read.database or "", read.user) == (shown.database, shown.user)


@pytest.mark.parametrize("url", UNREADABLE_URLS[:8])
def test_an_engine_refuses_the_same_urls(url):
    with pytest.raises(TidegateError) as caught:
        parse_server_url(url)
    assert caught.value.code is Code.SOURCE_URL
    assert "shop" not in caught.value.message
