"""Every area of the state in one SQLite file: WAL, mode 0600."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.seal_memory import FILE as SEALS_FILE
from tidegate.store.seal_memory import SealMemory
from tidegate.store.seals import Seals
from tidegate.store.sqlite.approvals import SqliteApprovalStore
from tidegate.store.sqlite.budgets import SqliteBudgetStore
from tidegate.store.sqlite.carried import SqliteCarriedStore
from tidegate.store.sqlite.changes import SqliteChangeStore
from tidegate.store.sqlite.connection import DIALECT, StateConnection, failures, is_full, prepare
from tidegate.store.sqlite.gates import SqliteGateStore
from tidegate.store.sqlite.history import SqliteHistoryStore
from tidegate.store.sqlite.messages import SqliteMessageStore
from tidegate.store.sqlite.operators import SqliteOperatorStore
from tidegate.store.sqlite.pairings import SqlitePairingStore
from tidegate.store.sqlite.questions import SqliteQuestionStore
from tidegate.store.sqlite.rights import RequestsConnection, RightsConnection, SqliteVersions
from tidegate.store.sqlite.saved_queries import SqliteSavedQueryStore
from tidegate.store.sqlite.shared import SqliteSharedStore
from tidegate.store.sqlite.shipping import SqliteShippingStore
from tidegate.store.sqlite.sources import SqliteSourceStore
from tidegate.store.sqlite.staged_edits import SqliteStagedEditStore
from tidegate.store.sqlite.tasks import SqliteTaskStore
from tidegate.store.sqlite.tokens import SqliteTokenStore
from tidegate.store.sqlite.webhook import SqliteWebhookStore
from tidegate.store.sqlite.windows import SqliteWindowStore
from tidegate.store.versions import Topic


class SqliteState:
    """An `api.State` in the file at `path`, made if it is not there.

    Four connections: rights, which must not wait for others; what people ask and answer, synced
    like rights; what may lose its last moments in a power cut, which is history, the last use of a
    token, use of budgets, used nonces and failures, messages, and how far the record is shipped;
    and the counters of what has changed, which are only read.
    """

    def __init__(
        self, path: Path, key: ClusterKey | None = None, *, is_repair: bool = False
    ) -> None:
        """Open and bring up to date; its rows are sealed by the key, if there is one. Raises:
        TidegateError STATE_FAILED."""
        self.reserve = DiskReserve(path.with_name("reserve"))
        with failures():
            self.reserve.retry(lambda: prepare(path), is_full)
            self._versions = SqliteVersions(path)
            self._rights = self.reserve.retry(
                lambda: RightsConnection(path, self._versions, self.reserve), is_full
            )
        self.versions = self._versions.known
        self.reserve.fill()
        self._requests = RequestsConnection(path, self._versions, self.reserve)
        self._usage = StateConnection(path, "NORMAL", self.reserve)
        self._memory = SealMemory(path.with_name(SEALS_FILE) if key else None)
        self.seals = seals = Seals(DIALECT, key, self._memory)
        for each in (self._rights, self._requests, self._usage):
            each.settle = lambda used, is_kept: seals.settle(used, is_kept=is_kept)
        try:
            if not is_repair:
                seals.open(self._requests.reading, self._requests.changing)
        except BaseException:
            self.close()
            raise
        self.sources = SqliteSourceStore(self._rights, seals)
        self.tokens = SqliteTokenStore(self._rights, self._usage, seals)
        self.budgets = SqliteBudgetStore(self._rights, self._usage, seals)
        self.history = SqliteHistoryStore(self._usage)
        self.approvals = SqliteApprovalStore(self._requests, seals)
        self.operators = SqliteOperatorStore(self._requests, seals)
        self.changes = SqliteChangeStore(self._requests, seals)
        self.webhook = SqliteWebhookStore(self._requests, seals)
        self.tasks = SqliteTaskStore(self._requests)
        self.windows = SqliteWindowStore(self._requests)
        self.queries = SqliteSavedQueryStore(self._requests, seals)
        self.staged_edits = SqliteStagedEditStore(self._requests)
        self.pairings = SqlitePairingStore(self._requests, seals)
        self.questions = SqliteQuestionStore(self._requests, self._usage, seals)
        self.shipping = SqliteShippingStore(self._usage)
        self.shared = SqliteSharedStore(self._usage, seals)
        self.messages = SqliteMessageStore(self._usage, self._versions)
        self.gates = SqliteGateStore(self._usage)
        self.carried = SqliteCarriedStore(self._usage)

    def read_versions(self) -> Mapping[Topic, int]:
        return self._versions.read()

    def seal_again(self) -> int:
        with self._rights.changing() as connection:
            sealed = self.seals.seal_all(connection)
        self.seals.begin_new_life()
        return sealed

    def concerns(self) -> Sequence[str]:
        return self.seals.concerns()

    def now(self) -> float:
        return time.time()

    def try_writing(self) -> None:
        self._usage.try_writing()

    def close(self) -> None:
        self._versions.close()
        self._usage.close()
        self._requests.close()
        self._rights.close()
        self._memory.close()
        self.reserve.fill_again()
