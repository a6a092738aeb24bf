"""Every area of the state in one PostgreSQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.list_files import ListFiles
from tidegate.store.opening import SEEN_SERVER
from tidegate.store.postgres.approvals import PostgresApprovalStore
from tidegate.store.postgres.budgets import PostgresBudgetStore
from tidegate.store.postgres.carried import PostgresCarriedStore
from tidegate.store.postgres.changes import PostgresChangeStore
from tidegate.store.postgres.database import DIALECT, Database
from tidegate.store.postgres.gates import PostgresGateStore
from tidegate.store.postgres.history import PostgresHistoryStore
from tidegate.store.postgres.messages import PostgresMessageStore
from tidegate.store.postgres.operators import PostgresOperatorStore
from tidegate.store.postgres.pairings import PostgresPairingStore
from tidegate.store.postgres.questions import PostgresQuestionStore
from tidegate.store.postgres.saved_queries import PostgresSavedQueryStore
from tidegate.store.postgres.schema import prepare, seal_lock
from tidegate.store.postgres.shared import PostgresSharedStore
from tidegate.store.postgres.shipping import PostgresShippingStore
from tidegate.store.postgres.sources import PostgresSourceStore
from tidegate.store.postgres.staged_edits import PostgresStagedEditStore
from tidegate.store.postgres.tasks import PostgresTaskStore
from tidegate.store.postgres.tokens import PostgresTokenStore
from tidegate.store.postgres.versions import PostgresVersions
from tidegate.store.postgres.webhook import PostgresWebhookStore
from tidegate.store.postgres.windows import PostgresWindowStore
from tidegate.store.seal_memory import FILE as SEALS_FILE
from tidegate.store.seal_memory import SealMemory
from tidegate.store.seals import Seals
from tidegate.store.versions import Topic


class PostgresState:
    """An `api.State` in the database of a URL, whose tables are made if they are not there.
    `directory` is that of this gate, with its record and keys."""

    def __init__(
        self, url: str, directory: Path, key: ClusterKey | None = None, *, is_repair: bool = False
    ) -> None:
        """Open and bring up to date; its rows are sealed by the key, if there is one. Raises:
        TidegateError STATE_FAILED."""
        self.reserve = DiskReserve(directory / "reserve")
        """For the record of this gate, which is on a disk of this machine."""
        self._database = database = Database(url)
        database.identity = prepare(url)
        self._memory = SealMemory(directory / SEALS_FILE if key else None)
        files = ListFiles(directory / "state-seals.lists" if key else None)
        self.seals = database.seals = Seals(DIALECT, key, self._memory, files)
        self.reserve.fill()
        self._versions = PostgresVersions(database, directory / SEEN_SERVER)
        self.versions = self._versions.known
        try:
            if not is_repair:
                self.seals.open(database.reading, partial(seal_lock, database))
            self._versions.epochs.begin()
            if self.seals.is_active:
                self._versions.read()  # a server that was promoted may have older seals
        except BaseException:
            self.close()
            raise
        self.sources = PostgresSourceStore(database, self.versions)
        self.tokens = PostgresTokenStore(database, self.versions, self._versions.epochs)
        self.budgets = PostgresBudgetStore(database, self.versions)
        self.history = PostgresHistoryStore(database)
        self.approvals = PostgresApprovalStore(database)
        self.operators = PostgresOperatorStore(database)
        self.changes = PostgresChangeStore(database)
        self.webhook = PostgresWebhookStore(database)
        self.tasks = PostgresTaskStore(database)
        self.windows = PostgresWindowStore(database)
        self.queries = PostgresSavedQueryStore(database)
        self.staged_edits = PostgresStagedEditStore(database)
        self.pairings = PostgresPairingStore(database)
        self.questions = PostgresQuestionStore(database)
        self.shipping = PostgresShippingStore(database)
        self.shared = PostgresSharedStore(database)
        self.messages = PostgresMessageStore(database)
        self.gates = PostgresGateStore(database)
        self.carried = PostgresCarriedStore(database)

    def read_versions(self) -> Mapping[Topic, int]:
        return self._versions.read()

    def seal_again(self) -> int:
        with seal_lock(self._database) as connection:
            sealed = self.seals.seal_all(connection)
        self.seals.begin_new_life()
        return sealed

    def concerns(self) -> Sequence[str]:
        return (*self._versions.concerns, *self.seals.concerns())

    def now(self) -> float:
        return self._versions.now()

    def try_writing(self) -> None:
        self._database.try_writing()

    def close(self) -> None:
        self._versions.close()
        self._database.close()
        self._memory.close()
        self.reserve.fill_again()
