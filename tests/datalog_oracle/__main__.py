"""`./dev datalog`: random queries and pulls, asked of Datalevin and of the evaluator.

Prints one JSON object, and ends with status 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from datalog_oracle.comparison import compare
from support.datalog import CACHE_HOME, prepared


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev datalog", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="queries")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same queries")
    asked = parser.parse_args()
    os.environ["XDG_CACHE_HOME"] = str(CACHE_HOME)
    datalog = prepared()
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            summary = compare(datalog, Path(folder), asked.count, asked.seed)
    finally:
        datalog.close()
    for find in summary.finds:
        print(json.dumps(find), flush=True)
    print(
        json.dumps(
            {
                "asked": summary.asked,
                "answered": summary.answered,
                "refused": summary.refused,
                "found": len(summary.finds),
            }
        )
    )
    return 1 if summary.finds else 0


if __name__ == "__main__":
    sys.exit(main())
