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

from products.datalog.oracle.comparison import compare, compare_pulls
from support.datalog import CACHE_HOME, prepared


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev datalog", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="queries, and as many pulls")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same queries")
    asked = parser.parse_args()
    os.environ["XDG_CACHE_HOME"] = str(CACHE_HOME)
    datalog = prepared()
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            both = [
                each(datalog, Path(folder), asked.count, asked.seed)
                for each in (compare, compare_pulls)
            ]
    finally:
        datalog.close()
    for kind, summary in zip(("queries", "pulls"), both, strict=True):
        for find in summary.finds:
            print(json.dumps(find), flush=True)
        said = {"asked": summary.asked, "answered": summary.answered, "refused": summary.refused}
        print(json.dumps({kind: said, "found": len(summary.finds)}), flush=True)
    return 1 if any(summary.finds for summary in both) else 0


if __name__ == "__main__":
    sys.exit(main())
