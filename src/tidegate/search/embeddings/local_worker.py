"""The process of the local model: `python -m tidegate.search.embeddings.local_worker`.

Loads the model at the first text. The operating system bounds its memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.engines.worker.frames import unpack
from tidegate.engines.worker.worker_main import Answer, serve
from tidegate.errors import Code, TidegateError
from tidegate.search.embeddings.local_model import LocalModel
from tidegate.system.limits import bound_memory

MEMORY_BYTES = 1_500_000_000
"""Three times what the largest batch takes."""


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """`path` is that of the model's file, if it is not the installed one."""

    path: str | None = None


class Worker:
    """One model, loaded when it is first needed."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._model: LocalModel | None = None
        self.verbs: Mapping[str, Answer] = {
            "setup": lambda body: self.setup(unpack(body, Setup)),
            "embed": lambda body: self.embed(unpack(body, list[str])),
        }

    def setup(self, setup: Setup) -> None:
        bound_memory(MEMORY_BYTES)
        self._path = setup.path

    def embed(self, texts: list[str]) -> list[list[float]]:
        if self._model is None:
            self._model = LocalModel(self._path)
        return self._model.vectors(texts)

    def interrupt(self) -> None:
        """A batch is not interrupted: it is short, or the process is ended."""

    def translate(self, error: Exception) -> TidegateError:
        if isinstance(error, TidegateError):
            return error
        return TidegateError(
            Code.PROVIDER_FAILED,
            f"The local model failed with {type(error).__name__}",
            hint="Send shorter texts, or configure another provider.",
        )


def main() -> None:
    """Serve the gate at the other end of standard input and output."""
    serve(Worker())


if __name__ == "__main__":
    main()
