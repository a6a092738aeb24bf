"""The command: `python -m bench [--quick] [--only point,...] [--without-peers]`.

A full run writes bench/results/latest.json and bench/REPORT.md. A partial one (quick, only,
without peers) writes beside its logs in bench/.work, so that it never replaces a full one.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from bench import (
    data,
    defog,
    defog_analyst,
    engines,
    hybrid,
    judging,
    layers,
    path,
    peers,
    points,
    servers,
    warehouse_analyst,
    workloads,
)
from bench.client import WrongAnswerError
from bench.mcp import McpError
from bench.report import render
from bench.servers import Contestant
from bench.workloads import Effort, Rows, Running

OVER_HTTP: dict[str, Callable[[dict[str, Running], Effort], Rows]] = {
    "point-repeated": lambda running, effort: workloads.throughput(running, effort, fresh=False),
    "point-fresh": lambda running, effort: workloads.throughput(running, effort, fresh=True),
    "latency-point": lambda running, effort: workloads.latency(
        running, effort, lambda one: one.points(fresh=False)
    ),
    "latency-1000": lambda running, effort: workloads.latency(
        running, effort, lambda one: one.large(1_000)
    ),
    "latency-10000": lambda running, effort: workloads.latency(
        running, effort, lambda one: one.large(10_000)
    ),
    "latency-tools-list": lambda running, effort: workloads.latency(
        running, effort, Running.listing
    ),
}

ON_SERVERS = {engine: points.workloads(engine) for engine in points.ENGINES}
"""The point query over HTTP again, on the other engines."""

ON_ITS_OWN: dict[str, Callable[[dict[str, Contestant], Effort], Rows]] = {
    "cold-start": workloads.cold_start,
    "memory": workloads.memory,
    "tokens": lambda contestants, _: workloads.tokens(contestants),
    "analyst": lambda contestants, _: workloads.analysts(contestants),
    "analyst-postgresql": lambda contestants, _: warehouse_analyst.answer_questions(contestants),
    "defog": lambda contestants, _: defog_analyst.questions(contestants),
}


IN_PROCESS: dict[str, Callable[[Effort], Rows]] = {
    "engines": engines.engines,
    "export": engines.export,
    "layers": layers.layers,
    "path": path.path,
    "judge": judging.judging,
    "hybrid": hybrid.hybrid,
}


def main() -> None:
    options = _options()
    if options.defog is not None:
        os.environ[defog.VARIABLE] = str(options.defog)
    wanted = chosen_workloads(options.only)
    alone = not needs_servers(wanted)
    peers.WORK.mkdir(exist_ok=True)
    data.make_shop(workloads.SHOP)
    data.make_company(workloads.COMPANY)
    with_peers = not options.without_peers and not alone
    if with_peers:
        peers.install()
    chosen: list[Contestant] = []
    if not alone:
        chosen = servers.contestants(
            with_peers=with_peers, only=options.servers, before=options.before
        )
    effort = workloads.QUICK if options.quick else workloads.FULL
    results = _head(effort, alone=alone)
    # The collector of the client must not stop in the middle of a measurement.
    gc.freeze()
    gc.disable()
    _run(results, wanted, chosen, effort, options, with_peers=with_peers)
    changed = (options.quick, options.without_peers, options.only, options.servers, options.before)
    results["partial"] = partial = any(changed)
    data_path = peers.WORK / "latest.json" if partial else peers.HERE / "results/latest.json"
    text_path = peers.WORK / "REPORT.md" if partial else peers.HERE / "REPORT.md"
    data_path.parent.mkdir(exist_ok=True)
    data_path.write_text(json.dumps(results, indent=1) + "\n")
    text_path.write_text(render(results))
    print(render(results))
    print(f"bench: this report is in {text_path}, its figures in {data_path}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--without-peers", action="store_true", help="install nothing")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAME,...",
        help=f"beginnings of workloads: {', '.join(_names())}",
    )
    parser.add_argument(
        "--servers",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAME,...",
        help="only these servers",
    )
    parser.add_argument(
        "--defog",
        type=Path,
        metavar="FOLDER",
        help=f"where the databases of the workload `defog` are (or set {defog.VARIABLE})",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="TREE",
        help="a work tree of another version, with a .venv, whose Tidegate takes part as well",
    )
    return parser.parse_args()


def _names() -> list[str]:
    on_servers = [name for names in ON_SERVERS.values() for name in names]
    return [*OVER_HTTP, *on_servers, *ON_ITS_OWN, *IN_PROCESS]


def chosen_workloads(only: list[str]) -> list[str]:
    """The names that begin with one of `only`; without any, all. Raises: SystemExit for one that
    begins none."""
    names = _names()
    for beginning in only:
        if not beginning or not any(name.startswith(beginning) for name in names):
            raise SystemExit(f"bench: no workload begins with `{beginning}`: {', '.join(names)}")
    return [name for name in names if not only or name.startswith(tuple(only))]


def needs_servers(wanted: list[str]) -> bool:
    """Whether one of these measures servers, ours and the peers."""
    return not set(wanted) <= IN_PROCESS.keys()


def _run(
    results: dict[str, object],
    wanted: list[str],
    chosen: list[Contestant],
    effort: Effort,
    options: argparse.Namespace,
    *,
    with_peers: bool,
) -> None:
    def measure(name: str, rows: Callable[[], Rows]) -> None:
        print(f"measuring {name} ...", flush=True)
        before = os.getloadavg()[0]
        try:
            done[name] = rows()
        except (McpError, WrongAnswerError, RuntimeError, TimeoutError) as error:
            # One server's wrong answer ends its workload, and the report says so.
            failures[name] = str(error)
            print(f"{name} failed: {error}", flush=True)
        loads[name] = (before, os.getloadavg()[0])
        gc.collect()

    done: dict[str, Rows] = {}
    loads: dict[str, tuple[float, float]] = {}
    failures: dict[str, str] = {}
    results |= {"workloads": done, "loads": loads, "failures": failures}
    by_name = {contestant.name: contestant for contestant in chosen}
    http = [name for name in OVER_HTTP if name in wanted]
    if http:
        with ExitStack() as stack:
            running = {name: workloads.start(stack, one) for name, one in by_name.items()}
            for name in http:
                measure(name, lambda name=name: OVER_HTTP[name](running, effort))
    for engine, kinds in ON_SERVERS.items():
        asked = {name: fresh for name, fresh in kinds.items() if name in wanted}
        if not asked:
            continue
        try:
            with points.running(
                engine, with_peers=with_peers, only=options.servers, before=options.before
            ) as found:
                for name, fresh in asked.items():
                    measure(name, lambda f=fresh, r=found: points.measured(r, effort, fresh=f))
        except (McpError, RuntimeError) as error:  # a server did not start
            failures |= dict.fromkeys(asked, str(error))
    for name in [name for name in ON_ITS_OWN if name in wanted]:
        measure(name, lambda name=name: ON_ITS_OWN[name](by_name, effort))
    for name in [name for name in IN_PROCESS if name in wanted]:
        measure(name, lambda name=name: IN_PROCESS[name](effort))


def _head(effort: Effort, *, alone: bool) -> dict[str, object]:
    """`alone`: no other server takes part."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=peers.HERE, capture_output=True, text=True
    ).stdout.strip()
    versions = {
        "tidegate": f"{version('tidegate')} ({commit})",
        "Python": f"{platform.python_version()} ({_build_of_python()})",
        "uvicorn": version("uvicorn"),
        "apsw": version("apsw"),
    }
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": _machine(),
        "versions": versions if alone else versions | peers.versions(),
        "rounds": effort.rounds,
    }


def _build_of_python() -> str:
    """Whose it is and whether it is optimised: Debian's and uv's are, by rules of their own."""
    base = Path(sys.base_prefix)
    if base == Path("/usr"):
        return "of the distribution"
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS"))
    if "--enable-optimizations" in arguments:
        return "optimised by its profile"
    return "compiled without optimisation by a profile: 5 to 20 % slower than what users have"


def _machine() -> str:
    with open("/proc/cpuinfo") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, Linux {platform.release()}"


if __name__ == "__main__":
    main()
