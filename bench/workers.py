"""A gate of one process, of two workers and of four: calls a second, CPU of a call, and how evenly
callers are spread, in turns; beside MCP Toolbox where it is installed (`./dev bench` does that).

./dev bench workers [--rounds N] [--seconds S] [--clients C] [--workers N ...]
                    [--database sqlite|postgresql] [--state sqlite|postgresql]

The load is made by wrk, whose CPU does not count, nor does that of PostgreSQL. The status of each
answer is checked by wrk, and one answer of each gate is read. The texts are one, or
another each time.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import data, peers, points
from bench.grounds import tests_module
from bench.process import Launch, tree
from bench.servers import Contestant, core, toolbox
from bench.turns import make_shop
from bench.workloads import CLIENTS, LOGS, Running, start

ROUNDS, SECONDS = 8, 3
ENGINES = ("sqlite", "postgresql")
WARM_S = 1
_SCRIPT = """
local number, fresh = 0, {fresh}
function setup(thread) counter = (counter or 0) + 1; thread:set("first", counter) end
function init() number = first * 20000 end
wrk.method, wrk.path = "POST", "{path}"
{headers}
local before, after = {before}, {after}
function request()
  number = number + 1
  local item = fresh and (100000 + number % 100000) or {item}
  return wrk.format(nil, nil, nil, before .. string.format("%06d", item) .. after)
end
"""


class Turn(NamedTuple):
    """What one turn gave: microseconds of CPU of a call, calls a second, and what the busiest
    process took of the CPU, in parts of an equal share."""

    cpu_us: float
    calls_s: float
    busiest: float


def with_workers(count: int, source: dict[str, Any]) -> Contestant:
    """The surface `core`, by so many workers; by one process without a parent if it is one."""
    made = core(state_name=f"workers-{count}", **source)
    if count == 1:
        return made

    def launch(port: int, database: Path) -> Launch:
        alone = made.http(port, database)
        return Launch((*alone.argv, "--workers", str(count)), alone.env)

    return replace(made, name=f"{made.name}, {count} workers", http=launch)


def script(one: Running, *, fresh: bool) -> Path:
    """A file for wrk that sends what the bench's own client sends."""
    head, _, body = next(one.points(fresh=False)).request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = [line.split(": ", 1) for line in lines]
    left_out = {"host", "content-length"}
    headers = [f"wrk.headers[{name!r}] = {value!r}" for name, value in fields
               if name.lower() not in left_out]  # fmt: skip
    before, after = body.decode().split(str(data.WARM_ID))
    text = _SCRIPT.format(
        fresh="true" if fresh else "false", path=first.split(" ")[1], item=data.WARM_ID,
        headers="\n".join(headers), before=f"[==[{before}]==]", after=f"[==[{after}]==]",
    )  # fmt: skip
    file = LOGS / f"workers-{one.port}-{'fresh' if fresh else 'repeated'}.lua"
    file.write_text(text)
    return file


def fire(one: Running, file: Path, clients: int, seconds: int) -> int:
    """How many calls were answered. Raises: RuntimeError if one of them was not, or by an error."""
    command = ("wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s", str(file))
    url = f"http://127.0.0.1:{one.port}"
    said = subprocess.run((*command, url), check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in said or re.search(r"Socket errors.* (read|timeout) [1-9]", said):
        raise RuntimeError(said)
    return int(re.findall(r"(\d+) requests in", said)[0])


def turn(one: Running, file: Path, clients: int, seconds: int) -> Turn:
    """One turn, after a short one that is not counted."""
    fire(one, file, clients, WARM_S)
    pids = tree(one.process.pid)
    before, own = one.process.cpu(), [_cpu(pid) for pid in pids]
    calls = fire(one, file, clients, seconds)
    used = one.process.cpu() - before
    shares = [_cpu(pid) - had for pid, had in zip(pids, own, strict=True)]
    serving = sorted(shares, reverse=True)[: max(1, len(pids) - 1)]
    return Turn(used / calls * 1e6, calls / seconds, serving[0] * len(serving) / sum(serving))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return float(int(fields[11]) + int(fields[12]))


def new_state() -> str:
    """The URL of a new database in the server that the tests use, which ends with this process."""
    server = tests_module("support.postgres_server").shared()
    return server.url(server.new_database())


def measure(given: argparse.Namespace) -> None:
    """Print the figures of each gate, and the ratio of its CPU to that of one process."""
    make_shop()
    rounds, seconds, clients = given.rounds, given.seconds, given.clients
    source, other = dict[str, Any](), toolbox
    if given.database == "postgresql":
        source, other = points.on_postgres()
    with ExitStack() as stack:
        gates: dict[str, Running] = {}
        for count in given.workers:
            shared = {"shared_state": new_state()} if given.state == "postgresql" else {}
            one = with_workers(count, source | shared)
            gates[f"{count} worker{'s' * (count > 1)}"] = start(stack, one)
        if peers.TOOLBOX.exists():
            gates["Toolbox"] = start(stack, other())
        first, *_ = gates
        for one in gates.values():
            if data.point_marker(data.WARM_ID) not in one.query(data.point(data.WARM_ID)):
                raise RuntimeError(f"{one.contestant.name} gives a wrong answer")
        for fresh in (False, True):
            found: dict[str, list[Turn]] = {name: [] for name in gates}
            files = {name: script(one, fresh=fresh) for name, one in gates.items()}
            for number in range(rounds):
                at = number % len(gates)
                for name in [*gates][at:] + [*gates][:at]:
                    found[name].append(turn(gates[name], files[name], clients, seconds))
            print(
                f"{'new' if fresh else 'repeated'} texts, {clients} clients, {rounds} rounds,"
                f" database {given.database}, state {given.state}"
            )
            for name, turns in found.items():
                pairs = zip(turns, found[first], strict=True)
                ratios = [own.cpu_us / alone.cpu_us for own, alone in pairs]
                print(
                    f"  {name:10} {median(each.cpu_us for each in turns):7.1f} us CPU a call"
                    f" {median(each.calls_s for each in turns):9,.0f} calls/s"
                    f"   CPU {median(ratios):.3f} of one process"
                    f" ({min(ratios):.3f} to {max(ratios):.3f})"
                    f"   busiest {median(each.busiest for each in turns):.2f}"
                )


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--database", choices=ENGINES, default="sqlite")
    parser.add_argument("--state", choices=ENGINES, default="sqlite")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        print("bench: wrk is needed; on Debian: apt-get install wrk", file=sys.stderr)
        return 1
    measure(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
