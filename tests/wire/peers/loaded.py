"""Conversations of an official Python SDK without the time that its import takes: a process that
has imported it forks for each of them.

Run by the SDK's own interpreter. Reads a JSON object on each line of its input, with `module` (a
peer of this folder with a function `converse(config)`), `config`, `environment` and `cwd`, and
answers with one that has `status`, `out`, `err` and `goes_on` (true: it takes further ones).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from typing import Any


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Have one conversation, in a process of its own."""
    module = importlib.import_module(request["module"])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            converse(module, request)
        _, ended = os.waitpid(process, 0)
        said: list[str] = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    status = os.waitstatus_to_exitcode(ended)
    return {"status": status, "out": said[0], "err": said[1], "goes_on": True}


def converse(module: Any, request: dict[str, Any]) -> None:
    """Be the client, and end the process."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["cwd"])
        module.converse(request["config"])
        status = 0
    except BaseException:  # noqa: BLE001  who asked is told
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
