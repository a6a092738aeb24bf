"""A call that is recognized by its bytes is answered as the same frame is when it is read whole."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from support.repeated_calls import Side, Sides, frame_of
from tidegate.protocol.repeated_calls import MOST_LEARNED, RepeatedCalls

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["SELECT 1", "SELECT 'ü'", '"', "\\", '","id":9,"x":"', "\u2028"]),
    st.sampled_from(["ask", "fail", "change"]),
)
SPOILERS = st.sampled_from([b"", b'"', b"\\", b"\xff", b"0", b" "])
IDS = st.one_of(st.integers(0, 10**20), st.sampled_from([0, 1, 17, 10**17, 10**18]))


OTHERS = st.sampled_from([{}, {"source": "shop"}, {"source": "other"}, {"n": [1, {}]}, {"n": 1.5}])
CALLS = st.lists(
    st.tuples(
        IDS, TEXTS, st.none() | st.integers(0, 400), SPOILERS
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(
    calls=CALLS, id_last=st.booleans(), spaces=st.booleans(), plain=st.booleans(),
    marked=st.booleans(), others=OTHERS,
)  # fmt: skip
@example(
    calls=[(1, "SELECT 1", None, b""), (2, "SELECT 2", 60, b"0")],
    id_last=False, spaces=False, plain=True, marked=False, others={},
)  # fmt: skip
def test_every_frame_is_answered_as_if_nothing_had_come_before(
    calls: list[tuple[int, str, int | None, bytes]],
    id_last: bool,
    spaces: bool,
    plain: bool,
    marked: bool,
    others: dict[str, Any],
) -> None:
    """`calls` are ids and texts of frames, and where a frame is spoilt and by what."""
    sides = Sides(marked=marked)
    first = (3, "SELECT id, name FROM customers", None, b"")
    for id, text, spoilt, by in (first, *calls):
        frame = frame_of(id, {"sql": text, **others}, id_last=id_last, spaces=spaces, plain=plain)
        if spoilt is not None:
            frame = frame[:spoilt] + by + frame[spoilt + 1 :]
        sides.ask(frame)


def test_a_repeated_call_is_recognized_in_either_order_of_its_fields() -> None:
    for id_last in (False, True):
        sides = Sides()
        for id in range(1, 4):
            frame = frame_of(id, {"sql": f"SELECT {id}"}, id_last=id_last)
            assert sides.ask(frame) == (id > 1)


def test_a_client_that_repeats_nothing_is_not_looked_at_without_end() -> None:
    side = Side(RepeatedCalls())
    for id in range(1, MOST_LEARNED + 1):
        side.ask(frame_of(id, {"sql": "x", "n": id}))
    last = {"sql": "SELECT 1", "n": 0}
    side.ask(frame_of(99, last))
    assert not side.recognizes(frame_of(100, last))
