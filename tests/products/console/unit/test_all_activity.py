"""Activity shows the records of all gates on the state, by what they answer each other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from products.console.support.two_records import SECRET_TEXT, SOURCES, gates
from support import postgres_state
from support.eventually import HANG_S
from tidegate.audit import proof
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.products.console import gate_questions, gate_records
from tidegate.products.console.activity import Activity
from tidegate.products.console.admins import Consent
from tidegate.products.console.all_activity import AllActivity
from tidegate.products.console.inbox_routes import RecentCalls
from tidegate.products.console.serving import open_records
from tidegate.products.console.token_forms import TokenForms


def statements(found: dict[str, Any]) -> list[str]:
    return [line["statement"] for line in found["lines"]]


async def test_lines_sessions_and_exports_are_those_of_all_gates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        here, (own, other) = pair.views[0], pair.ids
        found = await here.find({"limit": "7"}, ada)
        assert statements(found) == [SECRET_TEXT] * 2 + [f"SELECT {n}" for n in range(20, 15, -1)]
        assert [line["gate"] for line in found["lines"]] == [
            other,
            own,
            other,
            own,
            other,
            own,
            other,
        ]
        assert (found["counts"]["total"], found["missing"]) == (22, [])
        assert dict(found["facets"]["source"]) == {"shop": 20, "hidden": 2}
        assert set(found["gates"]) == {own, other}
        shown, pages = statements(found), 0
        while found["next"] is not None:
            pages += 1
            assert pages < 10
            found = await here.find({"limit": "7", "before": found["next"]}, ada)
            shown += statements(found)
        assert shown == [SECRET_TEXT] * 2 + [f"SELECT {n}" for n in range(20, 0, -1)]

        groups = await here.sessions({}, ada)
        assert [(each["gate"], each["calls"]) for each in groups["sessions"]] == [
            (other, 11),
            (own, 11),
        ]
        theirs = groups["sessions"][0]["session"]
        assert theirs.endswith(f"@{other}")
        lines = (await here.find({"session": theirs}, ada))["lines"]
        assert {line["gate"] for line in lines} == {other} and len(lines) == 11
        for name in (theirs, "b2"):
            story = await here.story({"session": name}, ada)
            assert story["session"]["session"] == theirs
            assert (story["lines"][0]["statement"], story["lines"][0]["gate"]) == (
                "SELECT 2",
                other,
            )
            assert story["lines"][0]["proof"]["state"]

        for name in ("b2", f"b2@{other}"):
            line = await here.line(name, ada)
            assert (line["line"]["statement"], line["line"]["gate"]) == ("SELECT 2", other)
            assert line["line"]["seq"] == 2
        with pytest.raises(TidegateError) as unknown:
            await here.line("nothing", ada)
        assert unknown.value.code is Code.ARGUMENT_INVALID

        made = await here.export({"format": "jsonl", "q": "SELECT 1"}, ada, tmp_path)
        made.close()
        assert (made.rows, made.notes, made.is_whole) == (11, [], True)


async def test_what_an_operator_may_not_see_at_a_gate_is_not_sent_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        grant = RoleGrant("viewer", frozenset({"shop"}))
        eve = await asyncio.to_thread(pair.sign_in, "eve", grant)
        vera = await asyncio.to_thread(pair.sign_in, "vera", RoleGrant("viewer", None))
        here = pair.views[0]
        found = await here.find({}, eve)
        assert {line["source"] for line in found["lines"]} == {"shop"} and len(found["lines"]) == 20
        assert found["gates"] == dict(
            zip(pair.ids, pair.ids, strict=True)
        )  # and no place of a machine
        assert (await here.find({"q": "record"}, eve))["lines"] == []
        whole = await here.find({}, vera)
        assert len(whole["lines"]) == 22 and SECRET_TEXT not in json.dumps(whole)
        assert (await here.find({"q": "record"}, vera))["lines"] == []
        with pytest.raises(TidegateError):
            await here.line(f"b31@{pair.ids[1]}", eve)
        await asyncio.to_thread(pair.apps[1].operators.sign_out, vera)
        monkeypatch.setattr(gate_records, "WAIT_S", 0.8)
        ended = await here.find({}, vera)  # a session that has ended gets nothing from another gate
        assert {line["gate"] for line in ended["lines"]} == {pair.ids[0]}
        assert [each["why"] for each in ended["missing"]] == ["silent"]


async def test_nothing_of_a_question_or_an_answer_can_be_read_in_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        kept = (
            "SELECT coalesce(string_agg(encode(body, 'escape'), ' '), '') FROM tidegate.messages"
            " UNION ALL SELECT coalesce(string_agg(encode(body, 'escape'), ' '), '')"
            " FROM tidegate.carried_values"
        )
        seen: list[str] = []
        remove = pair.apps[0].state.carried.remove

        def look(kind: str, id: str) -> None:
            seen.extend(str(row[0]) for row in postgres_state.ask(kept))
            remove(kind, id)

        monkeypatch.setattr(pair.apps[0].state.carried, "remove", look)
        found = await pair.views[0].find({"q": "record"}, ada)
        assert len(found["lines"]) == 2
        count = "SELECT count(*) FROM tidegate.carried_values WHERE kind = 'activity'"
        async with asyncio.timeout(HANG_S):
            while postgres_state.ask(count)[0][0] != 0:  # once read, it is removed
                await asyncio.sleep(0.02)
        texts = " ".join(seen)
        assert "activity.ask" not in texts and len(texts) > 100
        assert not any(
            word in texts for word in ("only on record", '"record"', "SELECT", ada.session.id)
        )


async def test_a_gate_that_does_not_answer_is_named_and_its_lines_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        monkeypatch.setattr(gate_records, "WAIT_S", 0.2)
        monkeypatch.setattr(gate_records, "LONG_WAIT_S", 0.2)
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        here, (own, other) = pair.views[0], pair.ids
        pair.reading[1].cancel()
        found = await here.find({"limit": "4"}, ada)
        assert {line["gate"] for line in found["lines"]} == {own}
        (missing,) = found["missing"]
        assert (missing["gate"], missing["why"]) == (other, "silent")
        assert missing["name"] == found["missing"][0]["name"] != other  # where it is, in words
        with pytest.raises(TidegateError, match=other):
            await here.line(f"b2@{other}", ada)
        made = await here.export({}, ada, tmp_path)
        made.close()
        assert (made.rows, made.is_whole) == (11, False)
        assert made.notes == [f"without the lines of the gate {other}, which did not answer"]

        monkeypatch.setattr(gate_records, "WAIT_S", HANG_S)
        pair.reading[1] = asyncio.create_task(pair.apps[1].mailbox.run())
        shown, pages = statements(found), 0
        while found["next"] is not None:
            pages += 1
            assert pages < 10
            found = await here.find({"limit": "4", "before": found["next"]}, ada)
            assert found["missing"] == []
            shown += statements(found)
        assert sorted(shown) == sorted([SECRET_TEXT] * 2 + [f"SELECT {n}" for n in range(1, 21)])


async def test_an_empty_inbox_has_the_last_calls_of_all_gates_and_waits_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        eve = await asyncio.to_thread(pair.sign_in, "eve", RoleGrant("viewer", frozenset({"shop"})))
        app, (own, other) = pair.apps[0], pair.ids
        consent = Consent(app.operators, lambda *_: None, lambda *_: None)
        forms = TokenForms(app.tokens, app.operators, lambda: SOURCES, consent)
        recent = RecentCalls(pair.homes[0], pair.views[0], lambda: SOURCES, forms)
        found = await recent.show(ada)
        assert statements(found | {"lines": found["calls"]}) == [
            *(SECRET_TEXT, SECRET_TEXT, "SELECT 20", "SELECT 19", "SELECT 18")
        ]
        assert [each["gate"] for each in found["calls"]] == [other, own, other, own, other]
        assert found["agents"] == [{"name": "bot", "client": "c", "last_at": 1_700_000_031.0}]
        assert (found["whole"], found["missing"], set(found["gates"])) == (True, [], {own, other})
        seen = await recent.show(eve)
        assert {each["source"] for each in seen["calls"]} == {"shop"}
        assert seen["agents"][0]["last_at"] == 1_700_000_020.0

        pair.reading[1].cancel()
        at_once = await asyncio.to_thread(recent.show_own, ada)  # WAIT_S is more than a minute here
        assert {each["gate"] for each in at_once["calls"]} == {own} and not at_once["whole"]
        monkeypatch.setattr(gate_records, "WAIT_S", 0.2)
        alone = await recent.show(ada)
        assert (alone["calls"], alone["whole"]) == (at_once["calls"], True)
        assert [(each["gate"], each["why"]) for each in alone["missing"]] == [(other, "silent")]


async def test_each_gate_proves_its_whole_record_and_one_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        eve = await asyncio.to_thread(pair.sign_in, "eve", RoleGrant("viewer", frozenset({"shop"})))
        real = [Activity(app.activity_index, app.prover, lambda: SOURCES) for app in pair.apps]
        here, _ = (
            AllActivity(home, open_records(app, home))
            for app, home in zip(pair.apps, real, strict=True)
        )
        (own, other), audit = pair.ids, pair.apps[1].server_audit
        for n in range(3):
            await asyncio.to_thread(
                audit.record_done_as, "call.cancelled", "ada", {"call": f"c{n}"}
            )

        async def proofs(who: SignedIn) -> tuple[dict[str, Any], dict[str, Any]]:
            found = await here.proof(who, again=False)
            while found["running"] or found["others"][0]["running"]:
                found = await here.proof(who, again=False)
            (theirs,) = found.pop("others")
            assert (found["gate"], theirs["gate"], found["missing"]) == (own, other, [])
            return found, theirs

        mine, theirs = await proofs(ada)
        assert mine["state"] in ("verified", "after_checkpoint") and mine["name"] != own
        assert theirs["state"] in ("verified", "after_checkpoint") and theirs["name"] != other
        assert theirs["lines"] != mine["lines"]

        (segment,) = (tmp_path / "b" / "audit").glob("*.jsonl")
        segment.write_bytes(segment.read_bytes().replace(b'"c1"', b'"c9"'))
        monkeypatch.setattr(proof, "FRESH_S", 0.0)
        await proofs(ada)  # what is shown is what was found before
        mine, theirs = await proofs(ada)
        assert theirs["state"] == "mismatch" and segment.name in theirs["text"]
        assert mine["state"] in ("verified", "after_checkpoint")
        theirs = (await proofs(eve))[1]
        assert (theirs["state"], theirs["text"]) == ("mismatch", "Faults were found.")

        pair.reading[1].cancel()
        monkeypatch.setattr(gate_records, "WAIT_S", 0.2)
        alone = await here.proof(ada, again=False)
        assert (alone["gate"], alone["others"]) == (own, [])
        assert [(each["gate"], each["why"]) for each in alone["missing"]] == [(other, "silent")]


async def test_questions_and_answers_that_no_gate_wrote_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gates(tmp_path, monkeypatch) as pair:
        ada = await asyncio.to_thread(pair.sign_in, "ada", RoleGrant("admin", None))
        mailbox = pair.apps[1].mailbox
        for kind, body in (
            (gate_questions.ASK, b"not json"), (gate_questions.ASK, b'["none", "gate"]'),
            (gate_questions.ANSWER, b"[1, 2]"), (gate_questions.ANSWER, b'["none", "gate"]'),
        ):  # fmt: skip
            await mailbox.send(kind, body)
        found = await pair.views[0].find({}, ada)
        assert len(found["lines"]) == 22
        monkeypatch.setattr(gate_questions, "MOST_ASKED", 0)
        assert [each["why"] for each in (await pair.views[0].find({}, ada))["missing"]] == [
            "silent"
        ]
