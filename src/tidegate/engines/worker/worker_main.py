"""The main loop of a worker process: it answers requests in order, and interrupts at once.

Runs in the worker. The worker exits when the gate exits, even during a request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol

import msgspec

from tidegate.engines.worker.frames import (
    HEADER,
    INTERRUPT,
    MOST_BYTES,
    Fault,
    WorkerReply,
    WorkerRequest,
    frame,
    pack,
)
from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import take_streams, widen_pipe
from tidegate.typed_values import msgpack_decoder

PIPE_BYTES = 1_048_576
"""A page should fit into the pipe, so that it is written without waiting for the gate."""

Answer = Callable[[msgspec.Raw], Any]


class Service(Protocol):
    """What a worker does. `verbs` answer requests in the main thread, with a value to pack."""

    @property
    def verbs(self) -> Mapping[str, Answer]: ...

    def interrupt(self) -> None:
        """End what is being answered, soon. Called in another thread."""
        ...

    def translate(self, error: Exception) -> TidegateError:
        """The coded error of what a verb raised. Raises it again if there is none."""
        ...


def serve(service: Service) -> None:
    """Answer until the gate closes its end."""
    source, target = _own_descriptors()
    requests: SimpleQueue[WorkerRequest] = SimpleQueue()
    line = _Line(service, requests)
    Thread(target=line.listen, args=(source,), daemon=True).start()
    while True:
        request = requests.get()
        line.current = request.number
        reply = _answer(service, request)
        line.current = 0
        _write(target, frame(reply))
        del request, reply


class _Line:
    """The gate's requests as they arrive."""

    def __init__(self, service: Service, requests: SimpleQueue[WorkerRequest]) -> None:
        self._service = service
        self._requests = requests
        self.current = 0

    def listen(self, source: int) -> None:
        """Read requests until the gate has gone; then end the process, without ceremony."""
        decode = msgpack_decoder(WorkerRequest).decode
        try:
            while True:
                (size,) = HEADER.unpack(_read(source, HEADER.size))
                request = decode(_read(source, size))
                if request.verb != INTERRUPT:
                    self._requests.put(request)
                elif request.number == self.current:
                    self._service.interrupt()
        finally:
            os._exit(0)


def _answer(service: Service, request: WorkerRequest) -> WorkerReply:
    try:
        body = pack(service.verbs[request.verb](request.body))
        if memoryview(body).nbytes <= MOST_BYTES:
            return WorkerReply(request.number, None, body)
        error = TidegateError(
            Code.LIMIT_BYTES, "A row is larger than the driver's process can send."
        )
    except MemoryError:
        error = TidegateError(Code.LIMIT_BYTES, "The statement needs more memory than it may have.")
    except Exception as caught:  # noqa: BLE001 - an edge: the gate gets every error, coded
        try:
            error = service.translate(caught)
        except Exception as unknown:  # noqa: BLE001 - its text could hold anything
            kind = type(unknown).__name__
            error = TidegateError(
                Code.INTERNAL, f"The driver's process met an unknown error, {kind}."
            )
    return WorkerReply(request.number, Fault.of(error))


def _own_descriptors() -> tuple[int, int]:
    """The pipes of the gate, out of reach of what prints or reads."""
    source, target = take_streams()
    widen_pipe(target, PIPE_BYTES)
    return source, target


def _read(source: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(source, min(size, PIPE_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _write(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]
