"""One exception and a closed set of codes, with one table per protocol.

A code is `area.problem`. Every code says what to do next: the hint here is the default, the place
that raises may give a better one. `docs/reference/errors.md` is generated from this module.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class Code(Enum):
    """What went wrong, for machines. The value is what callers see."""

    AUTH_MISSING = "auth.missing"
    AUTH_INVALID = "auth.invalid"
    AUTH_EXPIRED = "auth.expired"
    AUTH_LOCKED_OUT = "auth.locked_out"
    AUTH_UNAVAILABLE = "auth.unavailable"
    POLICY_SCOPE = "policy.scope"
    POLICY_SOURCE = "policy.source"
    POLICY_BLOCKED = "policy.blocked"
    POLICY_READ_ONLY = "policy.read_only"
    POLICY_DENIED = "policy.denied"
    POLICY_IDENTITY = "policy.identity"
    POLICY_CONFIRM = "policy.confirm"
    POLICY_MASKED = "policy.masked"
    POLICY_TABLE = "policy.table"
    CONFIRM_NEEDLESS = "policy.confirm_needless"
    APPROVAL_NEEDED = "approval.needed"
    APPROVAL_DECLINED = "approval.declined"
    APPROVAL_CHANGED = "approval.changed"
    ACCESS_CHANGED = "access.changed"
    OPERATOR_CONSENT = "operator.consent"
    CONSOLE_SIGNED_OUT = "console.signed_out"
    ARGUMENT_INVALID = "argument.invalid"
    SQL_EMPTY = "sql.empty"
    SQL_TOO_LONG = "sql.too_long"
    SQL_TOO_DEEP = "sql.too_deep"
    SQL_MULTIPLE = "sql.multiple_statements"
    SQL_UNREADABLE = "sql.unreadable"
    SQL_UNKNOWN = "sql.unknown_statement"
    SQL_FUNCTION = "sql.function_refused"
    SQL_FAILED = "sql.failed"
    SQL_OUTCOME = "sql.outcome_unknown"
    DATALOG_UNREADABLE = "datalog.unreadable"
    DATALOG_TOO_LONG = "datalog.too_long"
    DATALOG_TOO_DEEP = "datalog.too_deep"
    DATALOG_UNKNOWN = "datalog.unknown_form"
    DATALOG_FUNCTION = "datalog.function_refused"
    QUESTION_EMPTY = "question.empty"
    QUESTION_TOO_LONG = "question.too_long"
    QUESTION_UNANSWERABLE = "question.unanswerable"
    QUESTION_UNSOLVED = "question.unsolved"
    QUESTION_NO_SQL = "question.no_sql"
    QUESTION_COSTLY = "question.costly"
    ANSWER_UNKNOWN = "answer.unknown"
    MODEL_LIMIT = "model.limit"
    SOURCE_UNKNOWN = "source.unknown"
    SOURCE_UNREACHABLE = "source.unreachable"
    SOURCE_NOT_CONNECTED = "source.not_connected"
    SOURCE_BUSY = "source.busy"
    SOURCE_WARMING = "source.warming"
    SOURCE_LOCKED = "source.locked"
    SOURCE_URL = "source.url"
    TABLE_UNKNOWN = "source.unknown_table"
    TAB_UNKNOWN = "window.unknown_tab"
    TAB_CHANGED = "tab.changed"
    QUERY_UNKNOWN = "query.unknown"
    QUERY_CHANGED = "query.changed"
    ENGINE_MISSING = "source.engine_missing"
    KEYRING_FAILED = "keyring.failed"
    SECRET_UNAVAILABLE = "secret.unavailable"  # noqa: S105 - a code
    DRIVER_UNRESOLVED = "driver.unresolved"
    DRIVER_REPOSITORY = "driver.repository"
    DRIVER_UNTRUSTED = "driver.untrusted"
    DOCUMENT_INVALID = "document.invalid"
    DOCUMENT_REGISTRY = "document.registry"
    DOCUMENT_UNTRUSTED = "document.untrusted"
    CREDENTIAL_UNAVAILABLE = "credential.unavailable"
    CREDENTIAL_REFUSED = "credential.refused"
    HOST_REFUSED = "host.refused"
    LIMIT_TIME = "limit.time"
    LIMIT_BYTES = "limit.bytes"
    LIMIT_RATE = "limit.rate"
    LIMIT_BUDGET = "limit.budget"
    LIMIT_PLAN = "limit.plan"
    LIMIT_CHANGES = "limit.rows_changed"
    CALL_CANCELLED = "call.cancelled"
    CALL_RUNNING = "call.running"
    RESULT_GONE = "result.gone"
    ROWS_CONFLICT = "rows.conflict"
    UNDO_CONFLICT = "undo.conflict"
    UNDO_UNAVAILABLE = "undo.unavailable"
    BRIDGE_UNTRUSTED = "bridge.untrusted"
    BRIDGE_NO_SERVER = "bridge.no_server"
    BRIDGE_OUTCOME = "bridge.outcome_unknown"
    CLIENT_FILE = "client.file"
    CONFIG_INVALID = "config.invalid"
    STATE_FAILED = "state.failed"
    AUDIT_UNAVAILABLE = "audit.unavailable"
    AUDIT_OUTCOME = "audit.outcome_unrecorded"
    PROVIDER_UNREACHABLE = "provider.unreachable"
    PROVIDER_TIMEOUT = "provider.timeout"
    PROVIDER_CUT_OFF = "provider.cut_off"
    PROVIDER_TOO_LARGE = "provider.too_large"
    PROVIDER_REPLY = "provider.invalid_reply"
    PROVIDER_RATE = "provider.rate_limited"
    PROVIDER_REFUSED = "provider.refused"
    PROVIDER_FAILED = "provider.failed"
    WEBHOOK_FAILED = "webhook.failed"
    EMBEDDING_MISSING = "embedding.missing"
    EMBEDDING_DIMENSION = "embedding.dimension"
    EMBEDDING_MODEL = "embedding.model"
    UNSUPPORTED = "engine.unsupported"
    SERVER_STOPPING = "server.stopping"
    SERVER_EXHAUSTED = "server.exhausted"
    INTERNAL = "internal.fault"


class ErrorMapping(NamedTuple):
    """What one code becomes on each edge: JSON-RPC code, HTTP status, SQLSTATE, exit status."""

    rpc: int
    http: int
    sqlstate: str
    exit_status: int
    hint: str


OUTCOME_UNKNOWN = frozenset({Code.SQL_OUTCOME, Code.AUDIT_OUTCOME, Code.BRIDGE_OUTCOME})
"""The errors after which it is not known whether the call took effect, or was recorded."""


ERRORS: dict[Code, ErrorMapping] = {
    Code.AUTH_MISSING: ErrorMapping(
        -32001, 401, "28000", 77, "Send `Authorization: Bearer TOKEN`."
    ),
    Code.AUTH_INVALID: ErrorMapping(
        -32001, 401, "28P01", 77, "Ask the operator for a valid token."
    ),
    Code.AUTH_EXPIRED: ErrorMapping(-32008, 401, "28000", 77, "Ask the operator for a new token."),
    Code.AUTH_LOCKED_OUT: ErrorMapping(-32000, 429, "28000", 77, "Wait, then send a valid token."),
    Code.AUTH_UNAVAILABLE: ErrorMapping(-32000, 503, "28000", 69, "Retry in a moment."),
    Code.POLICY_SCOPE: ErrorMapping(-32007, 403, "42501", 77, "Use a token with a wider scope."),
    Code.POLICY_SOURCE: ErrorMapping(-32007, 403, "42501", 77, "List the sources of this token."),
    Code.POLICY_BLOCKED: ErrorMapping(
        -32007, 403, "42501", 77, "Ask the operator to allow access to this source."
    ),
    Code.POLICY_READ_ONLY: ErrorMapping(
        -32007, 403, "25006", 77, "Send a statement that only reads, such as SELECT."
    ),
    Code.POLICY_DENIED: ErrorMapping(-32007, 403, "42501", 77, "Send a statement that only reads."),
    Code.POLICY_IDENTITY: ErrorMapping(
        -32007, 403, "28000", 77, "Ask the operator to name a role for this caller."
    ),
    Code.POLICY_CONFIRM: ErrorMapping(
        -32007,
        403,
        "42501",
        77,
        "Confirm it with the phrase that the tool asks for.",
    ),
    Code.POLICY_MASKED: ErrorMapping(
        -32007, 403, "42501", 77, "Use a plain SELECT, or ask the operator to remove the mask."
    ),
    Code.POLICY_TABLE: ErrorMapping(
        -32007, 403, "42501", 77, "Use a table that this token may use."
    ),
    Code.CONFIRM_NEEDLESS: ErrorMapping(-32602, 200, "22023", 2, "Send it without a confirmation."),
    Code.APPROVAL_NEEDED: ErrorMapping(-32007, 403, "42501", 77, "A person must approve it first."),
    Code.APPROVAL_DECLINED: ErrorMapping(
        -32007, 403, "42501", 77, "Do not retry without asking the user."
    ),
    Code.APPROVAL_CHANGED: ErrorMapping(-32602, 409, "22023", 65, "Look at it again."),
    Code.ACCESS_CHANGED: ErrorMapping(-32602, 409, "22023", 65, "Look at it again."),
    Code.CONSOLE_SIGNED_OUT: ErrorMapping(
        -32001, 401, "28000", 77, "Sign in; `tidegate console` opens the console signed in."
    ),
    Code.OPERATOR_CONSENT: ErrorMapping(-32007, 403, "42501", 77, "Run the command in a terminal."),
    Code.ARGUMENT_INVALID: ErrorMapping(-32602, 200, "22023", 2, "Correct the argument and retry."),
    Code.SQL_EMPTY: ErrorMapping(-32602, 200, "42601", 2, "Send one SQL statement."),
    Code.SQL_TOO_LONG: ErrorMapping(
        -32602, 200, "54000", 2, "Shorten the statement to 102,400 bytes."
    ),
    Code.SQL_TOO_DEEP: ErrorMapping(
        -32602, 200, "54001", 2, "Split the statement, or nest it less deeply."
    ),
    Code.SQL_MULTIPLE: ErrorMapping(-32602, 200, "42601", 2, "Send one statement at a time."),
    Code.SQL_UNREADABLE: ErrorMapping(-32602, 200, "42601", 2, "Correct the syntax."),
    Code.SQL_UNKNOWN: ErrorMapping(
        -32007, 403, "42501", 77, "Rewrite it as a SELECT if it only reads data."
    ),
    Code.SQL_FUNCTION: ErrorMapping(
        -32007, 403, "42501", 77, "Remove the function that the message names."
    ),
    Code.SQL_FAILED: ErrorMapping(-32602, 200, "42000", 65, "Correct the statement and retry."),
    Code.SQL_OUTCOME: ErrorMapping(
        -32603, 500, "08007", 75, "Check whether it took effect before you send it again."
    ),
    Code.DATALOG_UNREADABLE: ErrorMapping(
        -32602, 200, "42601", 2, "Correct the text at the place that the message names."
    ),
    Code.DATALOG_TOO_LONG: ErrorMapping(-32602, 200, "54000", 2, "Send a shorter text."),
    Code.DATALOG_TOO_DEEP: ErrorMapping(-32602, 200, "54001", 2, "Nest it less deeply."),
    Code.DATALOG_UNKNOWN: ErrorMapping(
        -32007, 403, "42501", 77, "Correct or leave out the form that the message names."
    ),
    Code.DATALOG_FUNCTION: ErrorMapping(
        -32007, 403, "42501", 77, "Use a built-in function of Datalog, or compute it yourself."
    ),
    Code.QUESTION_EMPTY: ErrorMapping(
        -32602, 200, "22023", 2, "Send a question or one SQL statement."
    ),
    Code.QUESTION_TOO_LONG: ErrorMapping(
        -32602, 200, "54000", 2, "Shorten the question, or send SQL with `mode` sql."
    ),
    Code.QUESTION_UNANSWERABLE: ErrorMapping(
        -32602, 200, "42P01", 66, "Ask for what the tables hold."
    ),
    Code.QUESTION_UNSOLVED: ErrorMapping(
        -32602, 200, "42000", 65, "Ask in other words that name tables or columns, or send SQL."
    ),
    Code.QUESTION_NO_SQL: ErrorMapping(
        -32602, 200, "42601", 65, "Ask in other words, or configure a model that writes SQL."
    ),
    Code.QUESTION_COSTLY: ErrorMapping(
        -32602, 200, "54000", 75, "Narrow the question, or raise `language.max_cost`."
    ),
    Code.ANSWER_UNKNOWN: ErrorMapping(
        -32602, 200, "34000", 66, "Ask the earlier question again and use the handle of its answer."
    ),
    Code.MODEL_LIMIT: ErrorMapping(
        -32000, 429, "53400", 75, "Wait until tomorrow (UTC), or raise the limit."
    ),
    Code.SOURCE_UNKNOWN: ErrorMapping(
        -32602, 200, "3D000", 66, "List the sources and use one of them."
    ),
    Code.SOURCE_UNREACHABLE: ErrorMapping(
        -32000, 503, "08001", 69, "Check that the database is running and reachable."
    ),
    Code.SOURCE_NOT_CONNECTED: ErrorMapping(-32602, 200, "08003", 69, "Connect the source first."),
    Code.SOURCE_BUSY: ErrorMapping(-32000, 503, "55P03", 75, "Retry in a moment."),
    Code.SOURCE_WARMING: ErrorMapping(
        -32000, 503, "57P03", 75, "Retry when the time that the message names has passed."
    ),
    Code.SOURCE_LOCKED: ErrorMapping(
        -32000, 503, "55006", 75, "End the process that the message names, or use its server."
    ),
    Code.SOURCE_URL: ErrorMapping(-32602, 200, "08001", 66, "Correct the source's URL."),
    Code.TABLE_UNKNOWN: ErrorMapping(-32602, 200, "42P01", 66, "List or search the tables first."),
    Code.TAB_UNKNOWN: ErrorMapping(-32602, 200, "02000", 66, "Use a tab that is open."),
    Code.TAB_CHANGED: ErrorMapping(
        -32602, 409, "40001", 65, "Read the tab again before you write it."
    ),
    Code.QUERY_UNKNOWN: ErrorMapping(
        -32602, 404, "02000", 66, "Use a saved query that is in your list."
    ),
    Code.QUERY_CHANGED: ErrorMapping(
        -32602, 409, "40001", 65, "Read the query again before you write it."
    ),
    Code.ENGINE_MISSING: ErrorMapping(
        -32000, 503, "0A000", 69, "Install the extra that the message names."
    ),
    Code.KEYRING_FAILED: ErrorMapping(
        -32000, 503, "58000", 69, "Unlock the keyring, or keep the password in a file."
    ),
    Code.SECRET_UNAVAILABLE: ErrorMapping(
        -32000, 503, "58000", 69, "Have the operator check the place that the message names."
    ),
    Code.DRIVER_UNRESOLVED: ErrorMapping(
        -32000, 503, "0A000", 66, "Check the driver's coordinate and the repository."
    ),
    Code.DRIVER_REPOSITORY: ErrorMapping(
        -32000, 503, "08001", 69, "Check the repository's address, and that it is reachable."
    ),
    Code.DRIVER_UNTRUSTED: ErrorMapping(
        -32000, 502, "58000", 77, "Ask who runs the repository of the driver."
    ),
    Code.DOCUMENT_INVALID: ErrorMapping(
        -32000, 502, "F0000", 65, "`tidegate cloud check` shows all faults of provider documents."
    ),
    Code.DOCUMENT_REGISTRY: ErrorMapping(
        -32000, 503, "08001", 69, "Check the registry's address, and that it is reachable."
    ),
    Code.DOCUMENT_UNTRUSTED: ErrorMapping(
        -32000, 502, "58000", 77, "Ask who runs the registry of the provider documents."
    ),
    Code.CREDENTIAL_UNAVAILABLE: ErrorMapping(
        -32000, 503, "28000", 77, "Set the variable, file or profile that the message names."
    ),
    Code.CREDENTIAL_REFUSED: ErrorMapping(
        -32000, 502, "28000", 77, "Renew the credential that the message names."
    ),
    Code.HOST_REFUSED: ErrorMapping(
        -32007, 403, "42501", 77, "Ask the operator to allow the host that the message names."
    ),
    Code.LIMIT_TIME: ErrorMapping(
        -32003, 200, "57014", 75, "Narrow the statement or raise the timeout."
    ),
    Code.LIMIT_BYTES: ErrorMapping(-32005, 413, "54000", 2, "Ask for fewer rows or columns."),
    Code.LIMIT_RATE: ErrorMapping(-32000, 429, "53400", 75, "Wait before the next call."),
    Code.LIMIT_BUDGET: ErrorMapping(
        -32000, 429, "53400", 75, "Wait until the time that the message names."
    ),
    Code.LIMIT_PLAN: ErrorMapping(
        -32602, 200, "54000", 2, "Narrow it, such as by a condition on an indexed column."
    ),
    Code.LIMIT_CHANGES: ErrorMapping(
        -32602, 200, "54000", 2, "Change fewer rows at a time, such as by a narrower WHERE."
    ),
    Code.CALL_RUNNING: ErrorMapping(
        -32000, 503, "55P03", 75, "Send the same call again: it waits for the one that runs."
    ),
    Code.CALL_CANCELLED: ErrorMapping(
        -32002, 200, "57014", 75, "Send the call again if still needed."
    ),
    Code.RESULT_GONE: ErrorMapping(-32602, 200, "34000", 66, "Run the statement again."),
    Code.ROWS_CONFLICT: ErrorMapping(
        -32602, 200, "40001", 65, "Look at the rows as they are now, and decide about each."
    ),
    Code.UNDO_CONFLICT: ErrorMapping(
        -32602, 200, "55000", 65, "Look at the rows that the message names, and correct them."
    ),
    Code.UNDO_UNAVAILABLE: ErrorMapping(
        -32602, 200, "55000", 66, "List the changes that can be taken back."
    ),
    Code.BRIDGE_UNTRUSTED: ErrorMapping(
        -32000, 403, "28000", 77, "Remove the file and start `tidegate serve` again."
    ),
    Code.BRIDGE_NO_SERVER: ErrorMapping(
        -32000, 503, "08001", 69, "Run `tidegate serve --http 127.0.0.1:8765` to see why."
    ),
    Code.BRIDGE_OUTCOME: ErrorMapping(
        -32000, 502, "08007", 75, "Check whether it took effect before you send it again."
    ),
    Code.CLIENT_FILE: ErrorMapping(
        -32603, 500, "58000", 65, "Correct the file, or add the entry by hand."
    ),
    Code.CONFIG_INVALID: ErrorMapping(
        -32603, 500, "F0000", 78, "Correct the setting that the message names."
    ),
    Code.STATE_FAILED: ErrorMapping(
        -32000, 503, "58000", 74, "Check that the state directory exists and can be written."
    ),
    Code.AUDIT_UNAVAILABLE: ErrorMapping(
        -32603, 500, "58000", 74, "Nothing was changed. Make the audit log writable and retry."
    ),
    Code.AUDIT_OUTCOME: ErrorMapping(
        -32603, 500, "08007", 74, "It ran. Check what it changed before you send it again."
    ),
    Code.PROVIDER_UNREACHABLE: ErrorMapping(
        -32000, 503, "08001", 69, "Check the provider's address, and that it is running."
    ),
    Code.PROVIDER_TIMEOUT: ErrorMapping(
        -32003, 200, "57014", 75, "Retry, or give the provider more time in the settings."
    ),
    Code.PROVIDER_CUT_OFF: ErrorMapping(-32000, 502, "08006", 75, "Retry in a moment."),
    Code.PROVIDER_TOO_LARGE: ErrorMapping(
        -32000, 502, "54000", 69, "Check that the address is that of the provider's API."
    ),
    Code.PROVIDER_REPLY: ErrorMapping(
        -32000, 502, "08P01", 69, "Check that the address is that of the provider's API."
    ),
    Code.PROVIDER_RATE: ErrorMapping(-32000, 429, "53400", 75, "Wait before the next call."),
    Code.PROVIDER_REFUSED: ErrorMapping(-32000, 502, "28000", 77, "Check the key in the settings."),
    Code.PROVIDER_FAILED: ErrorMapping(
        -32000, 502, "58000", 75, "Check the model's name in the settings, or retry later."
    ),
    Code.WEBHOOK_FAILED: ErrorMapping(
        -32000, 502, "58000", 75, "Check `approvals.webhook` in the settings, and your server."
    ),
    Code.EMBEDDING_MISSING: ErrorMapping(
        -32000, 503, "0A000", 69, "Install the extra `embeddings`, or configure `embeddings`."
    ),
    Code.EMBEDDING_DIMENSION: ErrorMapping(
        -32602, 200, "22000", 65, "Configure the model that made the vectors of this column."
    ),
    Code.EMBEDDING_MODEL: ErrorMapping(
        -32602, 200, "22000", 65, "Configure the model that made the vectors of this column."
    ),
    Code.UNSUPPORTED: ErrorMapping(
        -32602, 200, "0A000", 69, "Use a source whose engine supports it."
    ),
    Code.SERVER_STOPPING: ErrorMapping(
        -32000, 503, "57P01", 75, "Send it to another server, or again in a moment."
    ),
    Code.SERVER_EXHAUSTED: ErrorMapping(
        -32000, 503, "53300", 75, "Close connections, or raise the limit that the log names."
    ),
    Code.INTERNAL: ErrorMapping(-32603, 500, "XX000", 70, "Report the call id to the operator."),
}


TABLE_LIST_RULE = "actor.tables"
"""What refusals for the sake of an actor's list of tables name as their rule."""


ERROR_DETAIL = "detail"
"""The key in `details` of what the database says in addition to its message, which ends with it."""
EQUIVALENT_SQLSTATE = "equivalent_sqlstate"
"""The detail with the SQLSTATE that PostgreSQL gives for the same, where a database gives none or
another: drivers of PostgreSQL tell errors apart by it."""


class TidegateError(Exception):
    """Every refusal and failure that a caller may see.

    `message` says what (one sentence, no secrets), `hint` what to do, `details` is JSON-able.
    A message that names a path of this machine has it in `details` too, under `path`. `call_id`
    finds the call in the records; it is empty for an error that the gate did not raise. `approved`:
    a person had approved the call. `under`: of a call that ran, its source, its identity there and
    what was hidden from it (`model.requests.Basis`).
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        hint: str | None = None,
        retry_after_s: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint if hint is not None else ERRORS[code].hint
        self.retry_after_s = retry_after_s
        self.details = details or {}
        self.call_id = ""
        self.approved = False
        self.under: tuple[Any, Any, Any] | None = None

    @property
    def mapping(self) -> ErrorMapping:
        return ERRORS[self.code]

    @property
    def in_full(self) -> str:
        """The message as a sentence, and the hint after it unless it says that already."""
        message = self.message
        if not self.hint or message.endswith(self.hint):
            return message
        end = "" if message.endswith((".", "!", "?")) else "."
        return f"{message}{end} {self.hint}"

    def with_hint(self, hint: str) -> TidegateError:
        """The same error of the same call, with other advice."""
        advised = TidegateError(
            self.code,
            self.message,
            hint=hint,
            retry_after_s=self.retry_after_s,
            details=self.details,
        )
        advised.call_id, advised.approved = self.call_id, self.approved
        return advised

    def without_secrets(self) -> TidegateError:
        """The error for a caller elsewhere: of a path it names the last part only."""
        path = self.details.get("path")
        if path is None:
            return self
        name = path.rstrip("/").rpartition("/")[2]
        rest = {key: value for key, value in self.details.items() if key != "path"}
        discreet = TidegateError(
            self.code,
            self.message.replace(path, name),
            hint=self.hint.replace(path, name),
            retry_after_s=self.retry_after_s,
            details=rest,
        )
        discreet.call_id, discreet.approved = self.call_id, self.approved
        discreet.under = self.under
        return discreet


HIDDEN_PLAN = "masking.explain"
"""The rule by which the plan of a statement is refused that may run all the same."""


def masking_refused(reason: str, rule: str, hint: str | None = None) -> TidegateError:
    """The refusal of a request that could show hidden data. `rule` names the mask, the filter or
    the check that found it."""
    return TidegateError(Code.POLICY_MASKED, reason, hint=hint, details={"rule": rule})


def table_refused(name: str) -> TidegateError:
    """The refusal of a table that is not on the actor's list, whether there is one or not."""
    return TidegateError(
        Code.POLICY_TABLE,
        f"This token may not use the table `{name[:120]}`",
        details={"rule": TABLE_LIST_RULE},
    )
