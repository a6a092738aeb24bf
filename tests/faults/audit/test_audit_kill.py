"""Killed at any moment, the log keeps every event whose `append` returned, and goes on whole."""

import json
import os
import random
import signal
import subprocess
import sys

from support.eventually import PATIENCE_S
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify

ROUNDS = 40

# Acknowledges each event by a byte; statements of all sizes put page borders into lines.
WRITER = """
import os, sys
from pathlib import Path
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
log = AuditLog(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    call_id = f"{sys.argv[2]}-{number}"
    text = "SELECT " + "x" * (number * 37 % 4000)
    log.append(Event(call_id=call_id, phase="outcome", actor="a", statement=text))
    os.write(1, b".")
log.close()
"""


def start(directory, name, events):
    command = [sys.executable, "-c", WRITER, str(directory), name, str(events)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def calls(directory):
    found = []
    for path in sorted(directory.glob("*.jsonl")):
        found += [json.loads(line).get("call_id") for line in path.read_bytes().splitlines()]
    return [call_id for call_id in found if call_id]


def test_a_killed_writer_loses_no_event_whose_append_returned(tmp_path):
    rng = random.Random(2026)
    acknowledged = set()
    for number in range(ROUNDS):
        child = start(tmp_path, str(number), 1_000_000)
        seen = len(os.read(child.stdout.fileno(), 1))
        for _ in range(rng.randrange(12)):
            seen += len(os.read(child.stdout.fileno(), rng.randrange(1, 200)))
        child.send_signal(signal.SIGKILL)
        child.wait(PATIENCE_S)
        seen += len(child.stdout.read())
        child.stdout.close()
        acknowledged.update(f"{number}-{event}" for event in range(seen))
    log = AuditLog(tmp_path)
    log.append(Event(call_id="after", phase="outcome", actor="a"))
    log.close()
    report = verify(tmp_path)
    assert report.faults == ()
    assert report.segments == 1
    recorded = calls(tmp_path)
    assert acknowledged <= set(recorded)
    assert len(recorded) == len(set(recorded))
    assert len(recorded) - len(acknowledged) <= ROUNDS + 1


def test_processes_that_write_at_once_all_keep_their_events_in_order(tmp_path):
    children = [start(tmp_path, name, 300) for name in "abc"]
    for child in children:
        assert child.stdout.read() == b"." * 300
        child.stdout.close()
        assert child.wait(PATIENCE_S) == 0
    report = verify(tmp_path)
    assert report.intact
    assert report.segments <= 3
    recorded = calls(tmp_path)
    for name in "abc":
        own = [call_id for call_id in recorded if call_id.startswith(name)]
        assert own == [f"{name}-{number}" for number in range(300)]
