"""For any chain and any single change to it, the change is found, at the line where it was made."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.audit import chain

ORDINARY = settings(database=None, deadline=None)
texts = st.lists(st.text(max_size=20), min_size=2, max_size=12)


def chained(words):
    lines, previous = [], chain.START
    for seq, word in enumerate(words, 1):
        body = json.dumps({"seq": seq, "word": word}, separators=(",", ":")).encode()
        line, previous = chain.seal(body, previous)
        lines.append(line)
    return lines


@ORDINARY
@given(texts)
def test_an_untouched_chain_holds(words):
    lines = chained(words)
    checked = chain.check(lines)
    assert checked.fault is None
    assert checked.lines == len(words)
    assert checked.hashes == {}


@ORDINARY
@given(texts, st.data())
def test_any_changed_byte_is_found_at_its_line(words, data):
    lines = chained(words)
    place = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[place]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[place][at]))
    lines[place] = lines[place][:at] + bytes([byte]) + lines[place][at + 1 :]
    assert chain.check(lines).fault.line == place + 1


@ORDINARY
@given(texts, st.data())
def test_any_removed_line_but_the_last_is_found(words, data):
    lines = chained(words)
    place = data.draw(st.integers(0, len(lines) - 2))
    del lines[place]
    assert chain.check(lines).fault.line == place + 1


@ORDINARY
@given(texts, st.data())
def test_any_two_exchanged_lines_are_found(words, data):
    lines = chained(words)
    first = data.draw(st.integers(0, len(lines) - 2))
    second = data.draw(st.integers(first + 1, len(lines) - 1))
    lines[first], lines[second] = lines[second], lines[first]
    assert chain.check(lines).fault.line == first + 1


@ORDINARY
@given(texts, texts, st.data())
def test_any_line_put_in_is_found(words, others, data):
    lines = chained(words)
    place = data.draw(st.integers(0, len(lines)))
    strange = data.draw(st.sampled_from([*lines, *chained(others), b"", b"{}"]))
    lines.insert(place, strange)
    checked = chain.check(lines)
    # The same line in its own place is no change, and its twin after it is the one put in.
    assert checked.fault is not None
    assert checked.fault.line in (place + 1, place + 2)


@ORDINARY
@given(texts, st.data())
def test_a_chain_that_was_joined_from_two_is_found(words, data):
    place = data.draw(st.integers(1, len(words) - 1))
    other = chained([words[0] + "x", *words[1:]])
    lines = chained(words)[:place] + other[place:]
    assert chain.check(lines).fault.line == place + 1
