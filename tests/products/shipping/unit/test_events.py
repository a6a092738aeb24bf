"""Lines of the record as events of OCSF 1.8: valid by the published schema, whatever they hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tidegate
from products.shipping.support.ocsf_schema import validated
from tidegate.audit import chain
from tidegate.audit.event import Entry, Event, encode
from tidegate.audit.server_events import ServerEvent, encode_server_event
from tidegate.products.shipping.destination import read_events
from tidegate.products.shipping.events import make_events
from tidegate.products.shipping.ocsf import Line
from tidegate.products.shipping.server_events import KINDS

NOW = 1_796_020_254.351
DETAILS = {
    "id": "tok_1", "name": "agent", "operator": "ada", "address": "192.0.2.7", "source": "shop",
    "approval": "ap_1", "caller": "tok_2", "caller_name": "bob", "session": "s1",
    "code": "auth.invalid", "reason": "why", "scope": "readOnly", "roles": "viewer",
}  # fmt: skip


def event_of(body: bytes, number: int = 1) -> dict[str, Any]:
    """The one event of a line."""
    line, _ = chain.seal(body, chain.START)
    (made,) = make_events("gate", "000007.jsonl", line + b"\n", number - 1)
    event = validated(made)
    assert event["metadata"]["uid"] == f"gate/000007/{number}"
    return event


def call(**fields: Any) -> dict[str, Any]:
    given = {"call_id": "c1", "phase": "outcome", "actor": "tok_1", "request": "query"} | fields
    return event_of(encode(Event(**given), 1, NOW))


def server(name: str, details: dict[str, str], **fields: Any) -> dict[str, Any]:
    event = ServerEvent(name=name, details=details, **fields)
    return event_of(encode_server_event(event, 1, NOW))


@pytest.mark.parametrize("phase", ["intent", "outcome", "refusal"])
@pytest.mark.parametrize("source", ["", "shop"])
@pytest.mark.parametrize("verb", ["", "select", "insert", "create", "made-up"])
def test_every_form_of_a_call_is_valid(phase: str, source: str, verb: str) -> None:
    for request in ("query", "browse", "change_rows", "made-up"):
        for code in ("", "policy.denied", "approval.needed", "sql.failed"):
            for statement in (None, "SELECT 'ü\u202e'"):
                call(
                    phase=phase, source=source, request=request, code=code, statement=statement,
                    statement_class=verb, arguments={"a": 1}, rule="source.read", rows=3, bytes=9,
                    elapsed_ms=1.25, effect="read", verdict="allow", address="", client="x/1",
                )  # fmt: skip


def test_a_call_on_a_source_is_activity_of_a_datastore_with_all_that_is_on_record() -> None:
    event = call(
        actor_name="agent", client="claude/1", surface="core", tool="query", source="shop",
        effect="read", verdict="allow", rule="source.read", statement="SELECT 1", rows=1, bytes=3,
        elapsed_ms=12.5, address="2001:db8::1", statement_class="select",
        on_behalf_of="carol", transaction="t1", trace_id="ab" * 16,
    )  # fmt: skip
    assert (event["class_uid"], event["activity_id"], event["status_id"]) == (6005, 4, 1)
    assert event["time"] == int(NOW * 1000)
    assert event["database"]["name"] == "shop"
    assert event["query_info"]["query_string"] == "SELECT 1"
    assert event["actor"] == {"user": {"uid": "tok_1", "name": "agent"}, "app_name": "claude/1"}
    assert event["src_endpoint"] == {"ip": "2001:db8::1"}
    assert event["policy"] == {"name": "source.read"}
    assert event["duration"] == 12
    assert event["metadata"]["correlation_uid"] == "c1"
    rest = event["unmapped"]
    assert (rest["rows"], rest["bytes"], rest["elapsed_ms"]) == (1, 3, 12.5)
    assert (rest["on_behalf_of"], rest["transaction"]) == ("carol", "t1")
    assert rest["trace_id"] == "ab" * 16


@pytest.mark.parametrize(
    ("trace", "sent"), [("", b""), ("ab" * 16, b"\xab" * 16), ("ab", b""), ("no trace", b"")]
)
def test_the_trace_of_a_call_goes_with_its_event(trace: str, sent: bytes) -> None:
    event = Event(call_id="c1", phase="outcome", actor="tok_1", request="query", trace_id=trace)
    line, _ = chain.seal(encode(event, 1, NOW), chain.START)
    (made,) = read_events(*make_events("gate", "000007.jsonl", line + b"\n"))
    assert made.trace_id == sent
    assert json.loads(made.body)["class_uid"] == 6003


@pytest.mark.parametrize(
    ("fields", "status", "action", "disposition"),
    [
        ({"phase": "intent"}, 99, 1, 1),
        ({"phase": "outcome"}, 1, 1, 1),
        ({"phase": "outcome", "code": "sql.failed"}, 2, 1, 27),
        ({"phase": "refusal", "code": "policy.denied"}, 2, 2, 2),
        ({"phase": "refusal", "code": "approval.needed"}, 2, 2, 14),
    ],
)
def test_how_a_call_ended_is_said_in_the_words_of_the_schema(
    fields: dict[str, str], status: int, action: int, disposition: int
) -> None:
    event = call(source="shop", **fields)
    found = event["status_id"], event["action_id"], event["disposition_id"]
    assert found == (status, action, disposition)
    assert event.get("status_code", "") == fields.get("code", "")


@pytest.mark.parametrize("name", [*KINDS, "someone.elses_event"])
def test_every_server_event_is_valid_with_and_without_details(name: str) -> None:
    assert server(name, {})["metadata"]["event_code"] == name
    server(name, DETAILS, actor="tok_9", actor_name="ada", client="x/1", address="::1")
    server(name, {"address": "not an address", "token": "t", "client": "c"})
    body = encode_server_event(ServerEvent(name=name, details={"10.0.0.1": "3"}), 1, NOW, 12)
    assert event_of(body)["count"] == 12


def test_sign_ins_rights_accounts_and_approvals_are_in_their_own_classes() -> None:
    failed = server("console.sign_in_failed", {"address": "192.0.2.7", "by": "passphrase"})
    assert (failed["class_uid"], failed["activity_id"], failed["status_id"]) == (3002, 1, 2)
    assert failed["src_endpoint"] == {"ip": "192.0.2.7"}
    signed_in = server("console.signed_in", {"session": "s1"}, actor="operator-ada")
    assert (signed_in["class_uid"], signed_in["status_id"]) == (3002, 1)
    assert (signed_in["user"], signed_in["session"]) == ({"uid": "operator-ada"}, {"uid": "s1"})
    created = server("token.created", {"id": "tok_1", "name": "agent"}, actor="cli")
    assert (created["class_uid"], created["activity_id"]) == (3001, 1)
    assert created["user"] == {"uid": "tok_1", "name": "agent"}
    roles = server("operator.roles_changed", {"operator": "ada", "roles": "admin"})
    assert (roles["class_uid"], roles["privileges"]) == (3005, ["admin"])
    asked = {"approval": "ap_1", "source": "shop", "caller": "tok_1", "caller_name": "agent"}
    allowed = server("approval.allowed", asked, actor="operator-ada")
    assert (allowed["class_uid"], allowed["activity_id"]) == (3005, 1)
    assert allowed["user"] == {"uid": "tok_1", "name": "agent"}
    assert allowed["resources"] == [{"name": "shop", "type": "source"}]
    assert server("approval.revoked", asked)["activity_id"] == 2


def test_events_about_rights_that_the_code_records_have_a_class() -> None:
    areas = r"(?:token|operator|pairing|login|bridge|source|console)"
    found = {
        name
        for file in Path(tidegate.__file__).parent.rglob("*.py")
        for name in re.findall(
            rf'(?:note|record|tell|before|after)\w*\(\s*"({areas}\.\w+)"', file.read_text()
        )
    }
    assert len(found) > 15
    assert found <= set(KINDS)


@pytest.mark.parametrize(
    "body",
    [
        {"phase": "checkpoint", "segment": "000001.jsonl", "ends": [], "signature": "ab"},
        {"phase": "open", "segment": "000001.jsonl", "process": 1},
        {"phase": "continued", "next": "000002.jsonl"},
        {"phase": "gap", "missed": 3, "since": "2026-11-30T06:30:54Z"},
    ],
)
def test_lines_about_the_record_itself_are_sent_whole(body: dict[str, Any]) -> None:
    line = {"seq": 4, "time": "2026-11-30T06:30:54.351168Z"} | body
    event = event_of(json.dumps(line).encode(), 4)
    assert event["class_uid"] == 6002
    sent = event["unmapped"]["record"]
    assert {name: sent[name] for name in line} == line
    assert (event["severity_id"] == 4) is (body["phase"] == "gap")


@pytest.mark.parametrize(
    "line",
    [b"no line", b'{"seq":8}', b'{"seq":8,"time":"x","phase":"open"}', b"\xff\xfe",
     b'{"seq":8,"time":"2026-11-30T06:30:54Z","phase":"outcome","rows":"many"}'],
)  # fmt: skip
def test_a_line_that_was_changed_is_an_event_as_well(line: bytes) -> None:
    (made,) = make_events("gate", "000001.jsonl", line + b"\n", 7)
    event = validated(made)
    assert (event["metadata"]["uid"], event["severity_id"]) == ("gate/000001/8", 4)
    assert event["metadata"]["event_code"] == "record.unreadable"


def test_whatever_a_line_of_a_call_or_of_the_server_holds_is_read() -> None:
    read = set(Line.__struct_fields__)
    assert set(Entry.__struct_fields__) - read == set()
    assert set(ServerEvent.__struct_fields__) - read == set()
