"""Tells for each line of its input, run as if it were a read, what the digest sees of it.

`python -m read_only_fuzz.witness ENGINE` prints one JSON list of parts per line.
"""

from __future__ import annotations

import json
import logging
import sys

from read_only_fuzz.__main__ import builder
from read_only_fuzz.search import difference


def main(engine: str) -> None:
    logging.disable(logging.WARNING)
    harness = builder(engine)()
    try:
        for line in sys.stdin:
            before = harness.digest()
            harness.run(line.strip().replace("{folder}", str(harness.folder)))
            print(json.dumps(difference(before, harness.digest())), flush=True)
    finally:
        harness.close()


if __name__ == "__main__":
    main(sys.argv[1])
