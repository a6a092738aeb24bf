"""The chain by itself: which lines verify, which do not and why, and what is known of the rest."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tidegate.audit.chain import START, Fault, check, follows, seal, sequence, unseal

HASH = "0" * 64


def chain(count: int, previous: bytes = START, first: int = 1) -> tuple[list[bytes], list[bytes]]:
    """Lines, and the hash of each."""
    lines, hashes = [], []
    for number in range(first, first + count):
        line, previous = seal(b'{"seq":%d,"a":"%d"}' % (number, number), previous)
        lines.append(line)
        hashes.append(previous)
    return lines, hashes


def test_a_line_ends_in_a_hash_over_itself_and_the_one_before() -> None:
    line, digest = seal(b'{"seq":1}', b"p" * 32)
    assert digest == sha256(b"p" * 32 + b'{"seq":1}').digest()
    assert line == b'{"seq":1,"hash":"%b"}' % digest.hex().encode()
    assert unseal(line) == (b'{"seq":1}', digest)
    assert follows(line, b"p" * 32)
    assert not follows(line, START)
    assert not follows(line.replace(b"1", b"2", 1), b"p" * 32)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{}", b'{"seq":1}', f',"hash":"{HASH}"}}'.encode(),
        f'{{"seq":1,"hash":"{HASH}"}} '.encode(), f'{{"seq":1,"hash":"{HASH[:-1]}"}}'.encode(),
        f'{{"seq":1,"hash":"{HASH[:-1]}g"}}'.encode(),
        f'{{"seq":1,"hash":"{HASH[:-1]}A"}}'.encode(), f'{{"seq":1,"hush":"{HASH}"}}'.encode(),
    ],
)  # fmt: skip
def test_what_does_not_end_in_a_hash_has_none(line: bytes) -> None:
    assert unseal(line) is None
    assert not follows(line, START)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b'{"seq":1,', 1), (b'{"seq":10,"a":1}', 10), (b'{"seq":' + b"9" * 18 + b",", 10**18 - 1),
        (b'{"seq":' + b"9" * 19 + b",", None), (b'{"seq":0,', None), (b'{"seq":01,', None),
        (b'{"seq":1}', None), (b' {"seq":1,', None), (b'{"a":1,"seq":1,', None), (b"", None),
    ],
)  # fmt: skip
def test_the_number_stands_first(line: bytes, number: int | None) -> None:
    assert sequence(line) == number


def test_an_empty_chain_verifies() -> None:
    found = check([], b"p" * 32)
    assert (found.lines, found.held, found.end) == (0, 0, b"p" * 32)
    assert (found.faults, found.runs, found.hashes, found.fault) == ((), (), {}, None)


@pytest.mark.parametrize(("previous", "first"), [(START, 1), (b"q" * 32, 7)])
def test_a_whole_chain_verifies_from_where_it_begins(previous: bytes, first: int) -> None:
    lines, hashes = chain(4, previous, first)
    found = check(lines, previous, first, frozenset({first, first + 2, first + 9}))
    assert (found.lines, found.held, found.end) == (4, 4, hashes[-1])
    assert found.hashes == {first: hashes[0], first + 2: hashes[2]}
    assert (found.faults, found.runs, found.fault) == ((), (), None)


def test_a_changed_line_is_one_fault_and_the_rest_verifies() -> None:
    lines, hashes = chain(5)
    lines[2] = lines[2].replace(b'"a":"3"', b'"a":"x"')
    found = check(lines, wanted=frozenset({2, 3, 4}))
    assert found.faults == (Fault(3, "the line was changed, or the one before it"),)
    assert found.fault == found.faults[0]
    assert found.runs == ((3, 3),)
    assert (found.lines, found.held, found.end) == (2, 4, hashes[1])
    assert found.hashes == {2: hashes[1], 4: hashes[3]}


def test_a_removed_line_is_a_fault_where_it_was() -> None:
    lines, hashes = chain(5)
    del lines[1]
    found = check(lines)
    assert found.faults == (Fault(2, "line 3 is where line 2 belongs"),)
    assert (found.lines, found.held, found.end) == (1, 3, hashes[0])


def test_exchanged_lines_are_one_run_of_faults() -> None:
    lines, hashes = chain(5)
    lines[1], lines[2] = lines[2], lines[1]
    found = check(lines)
    assert found.faults == (Fault(2, "line 3 is where line 2 belongs"),)
    assert found.runs == ((2, 4),)
    assert (found.lines, found.held, found.end) == (1, 2, hashes[0])


def test_two_runs_are_two_faults_and_the_end_is_before_the_first() -> None:
    lines, hashes = chain(7)
    lines[1] = lines[1].replace(b'"a":"2"', b'"a":"x"')
    lines[4] = b"rubbish"
    found = check(lines)
    assert found.faults == (
        Fault(2, "the line was changed, or the one before it"),
        Fault(5, "the line has no hash"),
    )
    assert found.runs == ((2, 2), (5, 6))
    assert (found.lines, found.held, found.end) == (1, 4, hashes[0])


def test_what_follows_a_line_that_cannot_be_read_is_not_known_and_what_follows_that_is() -> None:
    lines, _ = chain(5)
    lines[1] = b"rubbish"
    found = check(lines)
    assert found.runs == ((2, 3),)
    assert found.held == 3
    assert [fault.reason for fault in found.faults] == ["the line has no hash"]
    only, _ = chain(1)
    assert check([b"rubbish", *chain(2)[0][1:]]).runs == ((1, 2),)
    assert check([b"rubbish", *only]).faults[0].line == 1


def test_a_line_without_a_number_is_a_fault_and_takes_one_place() -> None:
    lines, hashes = chain(1)
    nameless, digest = seal(b'{"a":1}', hashes[0])
    third, _ = seal(b'{"seq":3,"a":1}', digest)
    found = check([*lines, nameless, third])
    assert found.faults == (Fault(2, "the line has no number"),)
    assert found.runs == ((2, 2),) and found.held == 2


def test_a_fault_in_the_first_line_leaves_the_end_where_the_chain_began() -> None:
    lines, _ = chain(3, b"p" * 32)
    found = check(lines, START)
    assert found.faults == (Fault(1, "the line was changed, or the one before it"),)
    assert (found.lines, found.held, found.end) == (0, 2, START)


def test_what_verifies_is_counted_up_to_the_first_fault_also_where_that_is_the_first_line() -> None:
    lines, _ = chain(4)
    changed = [lines[0].replace(b"1", b"8", 1), lines[1], lines[2], lines[3].replace(b"4", b"9", 1)]
    found = check(changed)
    assert [fault.line for fault in found.faults] == [1, 4]
    assert (found.lines, found.end) == (0, START)
