"""Callers who go on whatever happens: over HTTP in two revisions, and by the wire protocol."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

import psycopg

from faults.gates.clients import LEGACY, MODERN, Answer, Client
from faults.gates.fleet import Fleet
from faults.gates.ledger import Ledger, Sent, statement_of
from support.eventually import PATIENCE_S, wait_until


class Traffic:
    """So many callers, of which the `busy` ones send again after `rest_s` and the others after
    `idle_s`; each third call of a busy one is a change."""

    def __init__(
        self, fleet: Fleet, ledger: Ledger, token: str, *, busy: int, idle: int = 0, wires: int = 1
    ) -> None:
        self._fleet, self._ledger, self._token = fleet, ledger, token
        self._busy, self._idle, self._wires = busy, idle, wires
        self.rest_s, self.idle_s = 0.05, 20.0
        self.calls = 0
        self._wire_turns = 0
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Traffic:
        self._threads = [threading.Thread(target=asyncio.run, args=(self._run_all(),))]
        self._threads += [
            threading.Thread(target=self._run_wire, args=(n,)) for n in range(self._wires)
        ]
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for each in self._threads:
            each.join(2 * PATIENCE_S)
            assert not each.is_alive(), "a caller waits in vain"

    def wait_flowing(self, count: int = 20) -> None:
        """Wait until so many more calls were answered."""
        after = self.calls + count
        wait_until(lambda: self.calls >= after, "callers to be answered")

    async def _run_all(self) -> None:
        callers = [self._run_busy(n) for n in range(self._busy)]
        callers += [self._run_idle(n) for n in range(self._idle)]
        await asyncio.gather(*callers)

    async def _run_busy(self, number: int) -> None:
        client = await self._begin(number)
        turn = number
        while not self._ends.is_set():
            turn += 1
            if turn % 3 == 0:
                answer = await self._ledger.change(client, self._ledger.next_mark("b", number))
            else:
                answer = await client.query(f"SELECT {turn % 7} AS n")
                self._ledger.note_read(answer)
            await self._go_on(client, answer, self.rest_s)
        client.close()

    async def _run_idle(self, number: int) -> None:
        await asyncio.sleep(number / (self._idle + 1) * self.idle_s / 4)
        client = await self._begin(number)
        while not self._ends.is_set():
            answer = await client.query("SELECT 1 AS n")
            self._ledger.note_read(answer)
            await self._go_on(client, answer, self.idle_s)
        client.close()

    async def _begin(self, number: int) -> Client:
        client = Client(self._fleet.http, self._token, (MODERN, LEGACY)[number % 2])
        while not self._ends.is_set() and not (await client.connect()).done:
            await asyncio.sleep(0.2)
        return client

    async def _go_on(self, client: Client, answer: Answer, seconds: float) -> None:
        if answer.done:
            self.calls += 1
        else:
            seconds = max(seconds, 0.2)
        until = time.monotonic() + seconds
        while not self._ends.is_set() and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.5))

    def _run_wire(self, number: int) -> None:
        info = (
            f"host=127.0.0.1 port={self._fleet.wire} user=agent password={self._token} dbname=open"
            " connect_timeout=10"
        )
        while not self._ends.is_set():
            with suppress(psycopg.Error), psycopg.connect(info, autocommit=True) as gate:
                while not self._ends.is_set():
                    self._change_by_wire(gate, number)
                    self._ends.wait(self.rest_s * 2)
            self._ends.wait(0.2)

    def _change_by_wire(self, gate: psycopg.Connection, number: int) -> None:
        """A change; each fourth time two of them, in a transaction."""
        self._wire_turns += 1
        count = 2 if self._wire_turns % 4 == 0 else 1
        marks, at = [self._ledger.next_mark("w", number) for _ in range(count)], time.time()
        answer = Answer(200, "", "")
        try:
            if count == 1:
                gate.execute(statement_of(marks[0]).encode())
            else:
                with gate.transaction():
                    for mark in marks:
                        gate.execute(statement_of(mark).encode())
            self.calls += 1
        except psycopg.Error as error:
            answer = Answer(200 if error.sqlstate else 0, error.sqlstate or "", str(error))
            raise
        finally:
            for mark in marks:
                self._ledger.note(Sent(mark, "open", at, answer))
