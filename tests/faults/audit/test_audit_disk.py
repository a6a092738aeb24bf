"""A disk that is full: the event is refused, no half of it stays, and later ones are whole."""

import subprocess
import sys

from support.eventually import HANG_S
from tidegate.audit.verify import verify

# The limit of a file's size stands for a full disk: the kernel writes as much as fits.
WRITER = """
import resource, sys
from pathlib import Path
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.errors import Code, TidegateError

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def event(name):
    return Event(call_id=name, phase="outcome", actor="a", statement="SELECT 1")

limit(10)
log = AuditLog(Path(sys.argv[1]))
try:
    log.append(event("lost"))
    assert False
except TidegateError as error:
    assert error.code is Code.AUDIT_UNAVAILABLE
log.close()
limit(resource.RLIM_INFINITY)
log = AuditLog(Path(sys.argv[1]))
for size in (1_000, 1_003, 5_000):
    limit(size)
    for refusals in range(3):
        while True:
            try:
                log.append(event("kept"))
            except TidegateError as error:
                assert error.code is Code.AUDIT_UNAVAILABLE
                assert log.path.read_bytes().endswith(b"\\n")
                break
limit(resource.RLIM_INFINITY)
log.append(event("after"))
log.close()
print("done")
"""


def test_without_room_an_event_is_refused_and_the_chain_stays_whole(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", WRITER, tmp_path / "audit"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (child.stdout, child.stderr) == ("done\n", "")
    report = verify(tmp_path / "audit")
    assert report.intact
    assert report.notes == ()
    assert b'"after"' in (tmp_path / "audit" / "000001.jsonl").read_bytes()
