"""Whatever is done to the files of a signed record, by hands that do not have the key, is found."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.audit import chain
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify
from tidegate.config.model import AuditSettings

THOROUGH = settings(
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SMALL = AuditSettings(segment_bytes=1_500)


def write(state, count, **options):
    log = AuditLog(state / "audit", keys=state / "keys", **options)
    for number in range(count):
        log.append(Event(call_id=f"c{number}", phase="outcome", actor="a", statement="SELECT 'é'"))
    return log


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The directory of the state, and its files: five segments, two processes at once, all of it
    signed; two of the segments are full and continued."""
    state = tmp_path_factory.mktemp("signed")
    first = write(state, 4, settings=SMALL)
    write(state, 5).close()
    first.close()
    for _ in range(3):
        write(state, 6, settings=SMALL).close()
    files = {path.name: path.read_bytes() for path in sorted((state / "audit").iterdir())}
    assert len(files) >= 4
    assert verify(state / "audit", state / "keys").intact
    return state, files


def faults_of(record, files):
    state, _ = record
    with tempfile.TemporaryDirectory() as made:
        for name, content in files.items():
            (Path(made) / name).write_bytes(content)
        report = verify(Path(made), state / "keys")
    assert report.intact == (not report.faults)
    return [(fault.segment, fault.line) for fault in report.faults]


def lines_of(files, name):
    return files[name].splitlines(keepends=True)


def drawn_place(data, files, spare=0):
    """A segment and the index of one of its lines."""
    name = data.draw(st.sampled_from(sorted(files)))
    return name, data.draw(st.integers(0, len(lines_of(files, name)) - 1 - spare))


def near(faults, name, line):
    """Whether a fault is named at the line, or at the one before, whose break was touched."""
    return any(segment == name and line - 1 <= at <= line + 1 for segment, at in faults)


@THOROUGH
@given(st.data())
def test_any_changed_byte_is_found_where_it_is(record, data):
    files = dict(record[1])
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    files[name] = content[:at] + bytes([byte]) + content[at + 1 :]
    assert near(faults_of(record, files), name, content[:at].count(b"\n") + 1)


@THOROUGH
@given(st.data())
def test_any_removed_line_is_found_where_it_was(record, data):
    files = dict(record[1])
    name, place = drawn_place(data, files)
    lines = lines_of(files, name)
    del lines[place]
    files[name] = b"".join(lines)
    assert near(faults_of(record, files), name, place + 1)


@THOROUGH
@given(st.data())
def test_any_two_exchanged_lines_are_found(record, data):
    files = dict(record[1])
    name, first = drawn_place(data, files, spare=1)
    lines = lines_of(files, name)
    second = data.draw(st.integers(first + 1, len(lines) - 1))
    lines[first], lines[second] = lines[second], lines[first]
    files[name] = b"".join(lines)
    assert near(faults_of(record, files), name, first + 1)


@THOROUGH
@given(st.data())
def test_any_line_put_in_is_found(record, data):
    files = dict(record[1])
    name, place = drawn_place(data, files)
    other, copied = drawn_place(data, files)
    lines = lines_of(files, name)
    strange = data.draw(st.sampled_from([b"{}\n", b"\n", b"x\n", lines_of(files, other)[copied]]))
    lines.insert(place, strange)
    files[name] = b"".join(lines)
    assert near(faults_of(record, files), name, place + 1) or strange == lines[place + 1]
    assert faults_of(record, files)


@THOROUGH
@given(st.data())
def test_an_end_that_was_cut_off_at_any_byte_is_found(record, data):
    files = dict(record[1])
    name = data.draw(st.sampled_from(sorted(files)))
    cut = data.draw(st.integers(0, len(files[name]) - 1))
    files[name] = files[name][:cut]
    assert near(faults_of(record, files), name, files[name].count(b"\n"))


@THOROUGH
@given(st.data())
def test_any_set_of_removed_segments_is_found(record, data):
    names = sorted(record[1])
    gone = data.draw(st.sets(st.sampled_from(names), min_size=1))
    files = {name: content for name, content in record[1].items() if name not in gone}
    assert {segment for segment, _ in faults_of(record, files)} >= gone


@THOROUGH
@given(st.data())
def test_a_line_changed_with_all_hashes_after_it_recomputed_is_found(record, data):
    """Anyone can compute a hash; no one without the key can sign what it comes to."""
    files = dict(record[1])
    name, place = drawn_place(data, files)
    lines = [line[:-1] for line in lines_of(files, name)]
    bodies = [chain.unseal(line)[0] for line in lines]
    removing = data.draw(st.booleans())
    if removing:
        del bodies[place]
    else:
        bodies[place] = bodies[place][:-1] + b',"forged":1}'
    previous = chain.unseal(lines[place - 1])[1] if place else chain.START
    forged = lines[:place]
    for seq, body in enumerate(bodies[place:], chain.sequence(lines[place])):
        numbered = b'{"seq":%d,' % seq + body.partition(b",")[2]
        line, previous = chain.seal(numbered, previous)
        forged.append(line)
    files[name] = b"".join(line + b"\n" for line in forged)
    assert any(segment == name for segment, _ in faults_of(record, files))


@THOROUGH
@given(st.data())
def test_segments_that_were_given_each_others_names_are_found(record, data):
    files = dict(record[1])
    first, second = data.draw(
        st.lists(st.sampled_from(sorted(files)), min_size=2, max_size=2, unique=True)
    )
    files[first], files[second] = files[second], files[first]
    assert faults_of(record, files)


def test_a_record_put_back_to_an_older_copy_is_found_by_the_head(record, tmp_path):
    state = tmp_path / "state"
    write(state, 3).close()
    shutil.copytree(state / "audit", tmp_path / "older")
    write(state, 3).close()
    assert verify(state / "audit", state / "keys").intact
    (fault,) = verify(tmp_path / "older", state / "keys").faults
    assert (fault.segment, fault.line) == ("000001.jsonl", 5)
    assert "cut off" in fault.reason
