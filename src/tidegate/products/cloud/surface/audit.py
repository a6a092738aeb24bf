"""Puts each call of a tool into the file of calls, in the document's fields and words.

The gate's own log has each call as well: this file is a view for those who expect it. In `strict`
mode a call whose line cannot be written has no reply, and no change starts while that is so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.config.model import Config
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.language.statements import read_statement
from tidegate.products.cloud.surface.call_file import CallFile, CallRecord
from tidegate.products.cloud.surface.errors import error_text
from tidegate.products.cloud.surface.settings import AuditFile, CloudSurfaceSettings
from tidegate.secrets.redaction import cut_and_redact, mentions_secret, redact
from tidegate.sql.finding import Refusal

MAX_SQL_CHARS = 4_096
_MAX_NAME = 80
_MOST_ARGUMENTS = 32
"""A tool has fewer: of a call that no tool takes, the first are kept."""
MIB = 1_048_576
DAY_S = 86_400.0
_SERIES = r"stackql_mcp_server_\d{8}T\d{6}Z"
"""The names, less their ends, of the files that servers begin at each start."""
_OF_THE_SOURCE = frozenset({Code.SQL_FAILED, Code.SQL_OUTCOME})
"""What a statement can end with after it was admitted; other errors about SQL refuse it."""
_BEFORE = frozenset({"policy", "approval", "argument"})
"""Areas of errors that come before anything runs."""


class RecordedCall(Protocol):
    """What the line of a call says of it besides its arguments."""

    @property
    def tool(self) -> str: ...

    @property
    def approved(self) -> bool:
        """Whether a person approved it."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether its client can show a person a question."""
        ...


class CallAudit:
    """Writes the lines of one server. `file` is None where the operator has switched it off."""

    def __init__(self, settings: CloudSurfaceSettings, file: CallFile | None) -> None:
        self._mode = settings.mode
        self._failure_mode = settings.server.audit.failure_mode
        self._file = file

    @classmethod
    def open(cls, settings: CloudSurfaceSettings, config: Config) -> CallAudit:
        """The audit that the settings describe. Opens no file yet."""
        audit = settings.server.audit
        if audit.disabled:
            return cls(settings, None)
        where = audit.file
        directory = str(state_directory(config.state) / "cloud-calls")
        return cls(settings, _file(where, directory))

    @property
    def path(self) -> Path | None:
        return None if self._file is None else self._file.path

    async def check(self, query_class: str) -> None:
        """See that the line of a call can be written, before anything happens.

        Raises: TidegateError AUDIT_UNAVAILABLE if it cannot, and the call must not run.
        """
        if self._file is None or self._tolerates(query_class):
            return
        await asyncio.to_thread(self._file.check)

    async def record(
        self,
        context: RecordedCall,
        arguments: Mapping[str, Any],
        began: float,
        query_class: str,
        error: TidegateError | None,
        *,
        is_wrong: bool = False,
    ) -> None:
        """Write the line of a call that has ended. `began` is in Unix seconds. `is_wrong`: it had
        arguments that its tool does not take.

        Raises: TidegateError AUDIT_UNAVAILABLE, and then the reply must not leave; AUDIT_OUTCOME if
        the call has changed something.
        """
        if self._file is None:
            return
        sql = arguments.get("sql")
        line = CallRecord(
            timestamp=datetime.fromtimestamp(began, UTC).isoformat(),
            tool=context.tool,
            mode=self._mode,
            decision="refuse_immediate" if is_wrong else decision(context, error),
            query_class=query_class,
            sql=_redacted(sql) if isinstance(sql, str) and sql else "",
            args={
                redact(name[:_MAX_NAME]): _argument(name, value)
                for name, value in list(arguments.items())[:_MOST_ARGUMENTS]
            },
            duration_ms=round((time.time() - began) * 1000),
            error="" if error is None else redact(self._text(error, context)),
        )
        try:
            await asyncio.to_thread(self._file.write, line)
        except TidegateError as fault:
            if self._tolerates(query_class):
                return
            if query_class == "select" or (error is not None and not _may_have_run(error)):
                raise
            raise TidegateError(
                Code.AUDIT_OUTCOME,
                f"The statement ran, do not repeat it: the file of calls could not record it."
                f" {fault.message}",
                details=fault.details,
            ) from fault

    def _text(self, error: TidegateError, context: RecordedCall) -> str:
        return error_text(error, context.tool, self._mode, can_ask=context.can_ask)

    def _tolerates(self, query_class: str) -> bool:
        if self._failure_mode == "strict_mutations":
            return query_class == "select"
        return self._failure_mode == "best_effort"


def query_class(sql: str) -> str:
    """The document's class of a statement; `unknown` if it cannot be read, which is refused."""
    try:
        return read_statement(sql).statement_class
    except Refusal:
        return "unknown"


def decision(context: RecordedCall, error: TidegateError | None) -> str:
    """What was decided on a call, in the document's words."""
    if isinstance(error, ApprovalNeeded):
        if error.dismissed:
            return "needs_approval_cancelled"
        return "needs_approval_declined" if error.problem else "needs_approval_unavailable"
    if error is not None and error.code is Code.APPROVAL_DECLINED:
        return "needs_approval_declined"
    if context.approved:
        return "needs_approval_accepted"
    if error is None:
        return "allow"
    if error.code is Code.APPROVAL_NEEDED:
        return "needs_approval_unavailable"
    area = error.code.value.partition(".")[0]
    refused = area == "policy" or (area == "sql" and error.code not in _OF_THE_SOURCE)
    return "refuse_immediate" if refused else "allow"


def _may_have_run(error: TidegateError) -> bool:
    """Whether a change that failed with this error may have been sent."""
    area = error.code.value.partition(".")[0]
    if area == "sql":
        return error.code in _OF_THE_SOURCE
    return area not in _BEFORE and error.code is not Code.AUDIT_UNAVAILABLE


@cache
def _file(where: AuditFile, directory: str) -> CallFile:
    """The one file of a process that these settings describe."""
    return CallFile(
        _path(where, Path(where.dir or directory)),
        max_bytes=(where.max_size_mb or 100) * MIB,
        backups=where.max_backups,
        age_s=where.max_age_days * DAY_S,
        series="" if where.path is not None else _SERIES,
    )


def _path(where: AuditFile, directory: Path) -> Path:
    if where.path is not None:
        return Path(where.path).absolute()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return directory.absolute() / f"stackql_mcp_server_{stamp}.log"


def _redacted(sql: str) -> str:
    from tidegate.products.cloud.language.cloud_sql import LANGUAGE

    return cut_and_redact(sql, MAX_SQL_CHARS, LANGUAGE, "cloud")[0]


def _argument(name: str, value: Any) -> Any:
    if name == "sql" and isinstance(value, str):
        return _redacted(value)
    if mentions_secret(name):
        return "***"
    if isinstance(value, (int, float)) or value is None:
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return redact(text[:MAX_SQL_CHARS])


def given_arguments(arguments: msgspec.Struct) -> dict[str, Any]:
    """What a caller gave of a tool's arguments, without what is left at its default."""
    return {
        field.name: value
        for field in msgspec.structs.fields(arguments)
        if (value := getattr(arguments, field.name)) not in ("", 0, None)
    }
