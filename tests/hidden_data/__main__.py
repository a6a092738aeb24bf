"""`./dev hidden`: asks two worlds that differ only in what is hidden, and ends by itself.

Prints one JSON object per engine, and ends with status 1 if a reply differed.
"""

from __future__ import annotations

import argparse
import json
import sys

from hidden_data.hunt import hunt
from hidden_data.worlds import ENGINES


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev hidden", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, help="one engine; all of them if left out")
    parser.add_argument("--count", type=int, default=2_000, help="reads for each engine")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same worlds")
    asked = parser.parse_args()
    found = 0
    for tally in hunt([asked.engine] if asked.engine else list(ENGINES), asked.count, asked.seed):
        print(json.dumps(tally.as_dict()), flush=True)
        found += len(tally.finds)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
