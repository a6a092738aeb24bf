"""The section `ship`: what is refused, and by what words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority
from support.command_line import tidegate
from tidegate.config.loading import load
from tidegate.errors import TidegateError
from tidegate.products.shipping.settings import ShipSettings

FILE = {"name": "file", "url": "file:///var/log/record.jsonl"}


def settings(*to: dict[str, Any], **more: Any) -> str:
    return json.dumps({"ship": {"to": to, **more}})


def test_every_kind_of_destination_is_read(tmp_path: Path) -> None:
    text = settings(
        FILE,
        {"name": "siem", "url": "syslog+tls://siem.example.com", "ca_file": "/etc/ca.pem"},
        {"name": "old", "url": "syslog://[::1]:5140"},
        {"name": "otel", "url": "https://otel.example.com:4318/v1/logs",
         "headers": {"Authorization": "Bearer ${ENV:OTEL}", "X-Scope-OrgID": "gate"}},
        {"name": "here", "url": "http://127.0.0.1:4318/v1/logs"},
        {"name": "path", "url": "https://logs.example.com/otlp/${ENV:OTEL}"},
        max_lag_bytes=1_000_000_000,
    )  # fmt: skip
    file = tmp_path / "tidegate.json"
    file.write_text(text)
    found = load(str(file)).section(ShipSettings).to
    schemes = ["file", "syslog+tls", "syslog", "https", "http", "https"]
    assert [each.scheme for each in found] == schemes
    assert found[1].host == ("siem.example.com", 6514, True)
    assert found[2].host == ("::1", 5140, False)
    assert found[0].path == Path("/var/log/record.jsonl")


@pytest.mark.parametrize(
    ("to", "word"),
    [
        ([FILE, FILE], "Two destinations"),
        ([{**FILE, "name": "A b"}], "has the name"),
        ([{**FILE, "url": "file://host/x"}], "not that of a file"),
        ([{**FILE, "url": "ftp://x"}], "no known scheme"),
        ([{**FILE, "url": "syslog://"}], "not a host and a port"),
        ([{**FILE, "url": "syslog://a:b@host"}], "not a host and a port"),
        ([{**FILE, "url": "syslog://host:99999"}], "not a host and a port"),
        ([{**FILE, "url": "http://otel.example.com/v1/logs"}], "without encryption"),
        ([{**FILE, "url": "https://u:hunter2@h/v1/logs"}], "a login"),
        ([{**FILE, "url": "https://h/v1/logs?key=hunter2"}], "a query"),
        ([{**FILE, "headers": {"A": "b"}}], "for OTLP alone"),
        ([{**FILE, "ca_file": "/x"}], "`ca_file` is for"),
        ([{"name": "s", "url": "syslog+tls://h", "cert": "/x"}], "needed together"),
        ([{"name": "o", "url": "https://h/x", "headers": {"Authorization": "hunter2"}}], "literal"),
        ([{"name": "o", "url": "https://h/${NOTHING:x}"}], "no known kind"),
        ([{"name": "o", "url": "https://h/x", "headers": {"a b": "c"}}], "name of a header"),
        ([{"name": "o", "url": "https://h/x", "cert": "/x", "key": "/y"}], "syslog+tls alone"),
    ],
)
def test_what_could_not_work_is_refused_and_no_secret_is_shown(
    to: list[dict[str, Any]], word: str
) -> None:
    with pytest.raises(TidegateError) as caught:
        load(settings(*to))
    assert word in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_a_url_of_which_the_path_may_be_a_secret_is_read_from_a_file_alone() -> None:
    hosts = [FILE, {"name": "siem", "url": "syslog+tls://siem.example.com"}]
    assert load(settings(*hosts)).section(ShipSettings).to
    for url in ("https://logs.example.com/otlp/hunter2", "http://127.0.0.1:4318/v1/logs"):
        with pytest.raises(TidegateError, match="is not taken from inline") as caught:
            load(settings(*hosts, {"name": "otel", "url": url}))
        assert "hunter2" not in caught.value.message + caught.value.hint


def test_config_check_reads_what_the_settings_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "logs")
    cert, key = authority.sign("gate", "127.0.0.1")
    tls = {"name": "siem", "url": "syslog+tls://127.0.0.1", "ca_file": str(authority.file),
           "cert": str(cert), "key": str(key)}  # fmt: skip
    good = settings(tls, {"name": "file", "url": f"file://{tmp_path}/record.jsonl"})
    assert tidegate("config", "check", "--config", good, state=tmp_path).status == 0
    bad = settings({**tls, "key": str(authority.file)}, {"name": "f", "url": "file:///no/where/x"})
    ended = tidegate("config", "check", "--config", bad, state=tmp_path)
    assert (ended.status, "siem" in ended.err) == (78, True)
    bad = settings({"name": "f", "url": "file:///no/where/x"})
    ended = tidegate("config", "check", "--config", bad, state=tmp_path)
    assert (ended.status, "no directory" in ended.err) == (78, True)
