"""Frames that are nearly those of an earlier call, by hand: none is answered otherwise because of
it, and none costs more than its size allows."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref

import pytest
from msgspec import structs

from support.repeated_calls import META, MODERN, SETTINGS, Side, Sides, frame_of
from tidegate.protocol import repeated_calls
from tidegate.protocol.model import RevisionPolicy
from tidegate.protocol.params import LARGE
from tidegate.protocol.repeated_calls import MOST_BESIDE, MOST_LEARNED, RepeatedCalls

WRITTEN_META = json.dumps(META)
CALL = '{"jsonrpc":"2.0",%s"method":"tools/call","params":{%s"name":"query",%s,"_meta":%s}%s}'


def frame(
    id: str = "1", arguments: str = '{"sql":"SELECT 1"}', *, before: str = "", after: str = "",
    inner: str = "",
) -> bytes:  # fmt: skip
    """A call; `before` stands before its id, `after` at its end, `inner` in its parameters."""
    head = f'{before}"id":{id},' if id else before
    call = CALL % (head, inner, f'"arguments":{arguments}', WRITTEN_META, after)
    return call.encode("utf-8", "surrogatepass")


FIRST = frame()


@pytest.mark.parametrize(
    "doubled",
    [
        frame(before='"params":[],'),
        frame(before='"params":null,'),
        frame(before='"params":{},'),
        frame(inner='"arguments":"{}",'),
        frame(inner='"arguments":null,'),
        frame(inner='"arguments":{"sql":"SELECT a longer text"},'),
        frame(arguments='{"sql":[1],"sql":"SELECT 1"}'),
        frame(arguments='{"sql":"SELECT a longer text","sql":"SELECT 1"}'),
        frame(arguments='{"sql":"SELECT a longer text","s\\u0071l":"SELECT 1"}'),
        frame(before='"id":9,'),
        frame(before='"id":"9",'),
        frame(before='"id":null,'),
        frame(after=',"\\u0069d":1'),
        frame(after=',"\\"id":1'),
        frame(after=',"method":"tools/call"'),
    ],
)
def test_of_two_members_of_one_name_the_last_counts(doubled: bytes) -> None:
    sides = Sides()
    for id in (b"1", b"2", b"9", b"1"):
        sides.ask(doubled.replace(b'"id":1,', b'"id":%b,' % id))
        sides.ask(doubled.replace(b"SELECT 1", b"SELECT %b" % id))


@pytest.mark.parametrize(
    "id",
    ["0", "00", "01", "-1", "-0", "+1", "1e3", "1.0", "1.", "0x1", '"1"', '""', "null", "[]", "{}",
     "true", " 1", "1 ", "\t1", "1,1", '1,"id":2', "٣", "1" * 18, "1" * 19, "1" * 400],
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_an_id_is_echoed_as_it_was_sent_or_refused_as_ever(id: str, last: bool) -> None:
    sides = Sides()
    for each in ("7", id, "8", id):
        sides.ask(frame("", after=f',"id":{each}') if last else frame(each))


@pytest.mark.parametrize(
    "text",
    ['""', '" "', '"\\""', '"\\\\"', '"\\"', '"\\q"', '"\\/"', '"\\ud800"', '"\\ud83d\\ude00"',
     '"\\u0000"', '"\x00"', '"\x1f"', '"\n"', '"\x7f"', '"\ufeff"', '"\ud800"', '"\U0010ffff"',
     '"SELECT 1', 'SELECT 1"', '"x" ', ' "x"', '"x","source":"y"', '"x":"y"', '"x"}}//', "'x'", "1",
     "null", "[]", '"id": 5', '"\\"id\\":5,"', '"1,\\"id\\":2"'],
)  # fmt: skip
def test_a_text_is_read_by_the_rules_of_every_text(text: str) -> None:
    sides = Sides()
    for arguments in ('{"sql":"SELECT 1"}', f'{{"sql":{text}}}', '{"sql":"x"}'):
        for id_last in (False, True):
            id = len(arguments) + id_last
            sides.ask(
                frame("", arguments, after=f',"id":{id}') if id_last else frame(str(id), arguments)
            )


@pytest.mark.parametrize("spoilt", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_no_utf_8_are_refused_as_ever(spoilt: bytes) -> None:
    sides = Sides()
    assert not sides.ask(FIRST)
    assert not sides.ask(FIRST.replace(b"SELECT 1", spoilt))
    assert not sides.ask(FIRST.replace(b'"_meta"', b'"x":"%b","_meta"' % spoilt))


def test_what_stands_around_a_frame_is_part_of_it() -> None:
    sides = Sides()
    mark = b"\xef\xbb\xbf"
    for before in (mark, b"", mark, mark + mark, b" ", b"[", b"{"):
        for after in (b"", b"\n", b"}", b"]", mark):
            sides.ask(before + FIRST + after)
    for part in (FIRST[:-1], FIRST[1:], b"", b"{", mark):
        sides.ask(part)
    assert sides.ask(FIRST)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sql": "SELECT 1", "source": "SELECT 1"},
        {"sql": "SELECT 1", "source": "SELECT 2"},
        {"sql": "SELECT 1", "source": "SELECT"},
        {"source": "SELECT 1 ", "sql": "SELECT 1"},
        {"sql": "query"},
        {"sql": ","},
        {"sql": ":"},
        {"sql": ": "},
        {"sql": ""},
        {"": "SELECT 1"},
        {"sql": "SELECT 1", "n": 1.0, "t": True, "z": None},
        {"id": 1, "sql": "SELECT 1"},
        {"id": "1", "sql": "SELECT 1"},
        {"a": {"id": 1}, "sql": "SELECT 1"},
        {"n": 1},
        {},
    ],
)
def test_one_argument_is_never_taken_for_another(arguments: dict[str, object]) -> None:
    for id_last in (False, True):
        for spaces in (False, True):
            sides = Sides()
            for id in (1, 2, 1, 30):
                for name, value in arguments.items():
                    changed = {**arguments, name: f"{value}{id}" if id > 1 else value}
                    sides.ask(frame_of(id, changed, id_last=id_last, spaces=spaces))


@pytest.mark.parametrize("word", ["query", "tools/call", "2.0", MODERN, "tests", "1", "sql", "id"])
def test_a_text_that_stands_elsewhere_too_is_not_changed_there(word: str) -> None:
    first = frame(arguments=f'{{"sql":"{word}"}}')
    parts = first.split(f'"{word}"'.encode())
    for id_known in (False, True):
        for at in range(1, len(parts)):
            sides = Sides()
            sides.ask(first)
            quoted = [f'"{word}"'.encode()] * (len(parts) - 1)
            quoted[at - 1] = b'"other"'
            changed = b"".join(part + q for part, q in zip(parts, [*quoted, b""], strict=True))
            sides.ask(changed.replace(b'"id":1', b'"id":2') if id_known else changed)
            sides.ask(first)


def test_what_a_tool_does_to_its_arguments_is_seen_by_no_other_call() -> None:
    for others in ({}, {"n": 1}, {"n": [1]}, {"n": {"a": [1]}}):
        sides = Sides()
        for id, text in enumerate(("change", "x", "change", "y"), 1):
            sides.ask(frame_of(id, {"sql": text, **others}))


def test_a_call_that_reports_progress_or_answers_a_question_is_read_whole() -> None:
    for inner in ('"inputResponses":{},', '"requestState":"x",', '"inputResponses":null,'):
        sides = Sides()
        assert [sides.ask(frame(str(id), inner=inner)) for id in (1, 2)] == [False, "null" in inner]
    sides = Sides()
    with_token = FIRST.replace(b'"_meta":{', b'"_meta":{"progressToken":5,')
    assert [sides.ask(with_token) for _ in range(3)] == [False] * 3


def test_a_server_of_an_earlier_era_gets_each_call_with_its_own_response() -> None:
    """Its client may name a revision in a header that it does not know."""
    revision = "2024-11-05"
    settings = structs.replace(
        SETTINGS, revisions=RevisionPolicy((revision,), fallback=revision), without_session=revision
    )
    sides = Sides(settings=settings, streams=True)
    for id in (1, 2, 3):
        assert not sides.ask(frame(str(id)))


def test_a_refusal_before_a_call_is_opened_has_the_status_of_one() -> None:
    told: list[tuple[str, str]] = []

    def status_of(code: int, client: object, revision: str, agent: str) -> int:
        told.append((revision, agent))
        return 418 if revision == MODERN else 409

    sides = Sides(settings=structs.replace(SETTINGS, error_status=status_of))
    sides.ask(FIRST)
    sides.short.server.refuses = sides.whole.server.refuses = True
    assert sides.ask(FIRST)
    assert told == [("", "")] * 2


def test_a_call_has_the_actor_and_the_stream_of_its_own_request() -> None:
    sides = Sides()
    assert [sides.ask(frame(str(id))) for id in (1, 2, 3)] == [False, True, True]
    assert all(all(own) for *_, own, _ in sides.short.server.seen)


def test_nothing_is_kept_of_a_stream_whose_call_has_ended() -> None:
    side = Side(RepeatedCalls())
    side.ask(FIRST)
    transport = side.server.transport
    assert transport is not None
    assert side.recognizes(FIRST)
    left = [weakref.ref(transport.sender)]
    side.server.transport = transport = None
    gc.collect()
    assert [each() for each in left] == [None]


@pytest.mark.parametrize(
    ("inner", "after"),
    [("", ',"id":1'), ('"x":{"id":7},', ',"id":1'), ('"x":["id",1],"y":"id",', ',"id" : 1 ')],
)
def test_the_id_is_found_behind_what_looks_like_one(inner: str, after: str) -> None:
    sides = Sides()
    call = frame("", inner=inner, after=after)
    assert [sides.ask(call.replace(b"1 ", b"1%d " % n)) for n in (0, 2, 3)] == [False, True, True]


def test_frames_that_are_not_learned_leave_room_for_others() -> None:
    sides = Sides()
    long = json.dumps({"sql": "x" * LARGE}, separators=(",", ":"))
    for _ in range(MOST_LEARNED + 1):
        sides.ask(frame(arguments=long))
        sides.ask(FIRST.replace(b'"_meta":{', b'"_meta":{"progressToken":5,'))
    assert [sides.ask(FIRST) for _ in range(2)] == [False, True]


def test_of_many_frames_the_last_four_are_known() -> None:
    sides = Sides()
    frames = [frame(inner=f'"x":{number},') for number in range(6)]
    assert [sides.ask(each) for each in frames] == [False] * 6
    known = [sides.short.recognizes(each) for each in frames]
    assert known == [False, False, True, True, True, True]


def test_a_frame_full_of_ids_is_not_read_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    proven = repeated_calls._is_proven
    proofs: list[object] = []

    def counted(template: object) -> bool:
        proofs.append(template)
        return proven(template)  # type: ignore[arg-type]

    monkeypatch.setattr(repeated_calls, "_is_proven", counted)
    for many in (100, LARGE // 10):
        meta = ",".join(['{"id":1}'] * many)
        full = frame("", inner=f'"x":[{meta}],', after=',"id":1')
        Sides().ask(full)
    assert len(proofs) <= 2


@pytest.mark.parametrize("item", ["[]", '{"":1}', "0.5", '"aa"'])
def test_what_a_connection_keeps_is_bounded(item: str) -> None:
    """Also where a client fills frames with what takes many times its bytes once it is read."""
    side = Side(RepeatedCalls())
    side.ask(FIRST)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for size in (MOST_BESIDE, LARGE):
            many = ",".join([item] * ((size - len(FIRST) - 100) // (len(item) + 1)))
            for name in "abcd":
                side.ask(FIRST.replace(b'"_meta":{', f'"_meta":{{"{name}":[{many}],'.encode()))
                side.server.seen.clear()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 700_000


def test_a_text_of_any_length_below_the_large_is_recognized_and_not_kept() -> None:
    sides = Sides()
    beside = len(frame(arguments='{"sql":""}'))
    assert beside < MOST_BESIDE
    for length in (LARGE - beside, LARGE - beside + 1, 0, LARGE - beside):
        known = sides.ask(frame(arguments=json.dumps({"sql": "x" * length}, separators=(",", ":"))))
        assert known == (bool(sides.short.server.seen[1:]) and length <= LARGE - beside)
