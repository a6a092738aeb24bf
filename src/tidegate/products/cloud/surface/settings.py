"""The settings of the surface `cloud`: the section `[surface.cloud]`.

The keys, their defaults and the form of durations are those of the document's configuration. A key
that nothing here could follow is refused by its name.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.loading import convert_table
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.model.statement_rules import Admission, StatementRules
from tidegate.secrets.url_logins import refuse_literal

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600}
_PART = r"(\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(ns|us|µs|μs|ms|s|m|h)"
_LONGEST_S = 86_400.0


def seconds(text: str, setting: str) -> float:
    """The duration in seconds, more than 0 and at most a day. `setting` names it in errors.

    Raises: TidegateError CONFIG_INVALID.
    """
    if not re.fullmatch(f"(?:{_PART})+", text):
        raise invalid(
            f"`{setting}` cannot be {text[:40]!r}, which is no duration.",
            hint="Write a number and its unit, such as `30s`, `1m30s` or `500ms`.",
        )
    total = sum(float(number) * _UNIT_S[unit] for number, unit in re.findall(_PART, text))
    if not 0 < total <= _LONGEST_S:
        raise invalid(f"`{setting}` cannot be {text[:40]}: it is more than 0 and at most 24h.")
    return total


Mode = Literal["read_only", "safe", "delete_safe", "full_access"]
Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]

_CLASSES = ("mutation_create", "mutation_delete", "lifecycle")


def _rules(mode: Mode, *admissions: Admission) -> StatementRules:
    return StatementRules(mode, tuple(zip(_CLASSES, admissions, strict=True)))


RULES: dict[Mode, StatementRules] = {
    "read_only": _rules("read_only", "deny", "deny", "deny"),
    "safe": _rules("safe", "ask", "ask", "ask"),
    "delete_safe": _rules("delete_safe", "allow", "ask", "ask"),
    "full_access": _rules("full_access", "allow", "allow", "allow"),
}
"""The document's table: INSERT, UPDATE and REPLACE; DELETE; EXEC."""

PLAIN_TOOLS = frozenset({"server_info", "validate_select_query", "run_select_query"})
"""Tools that send SELECT and EXPLAIN alone, which any backing PostgreSQL understands."""

DEFAULT_ADDRESS = "127.0.0.1:9876"


class AuditFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of the audit: `path`, or a new file at each start in `dir`, which is by default in
    the state directory. It is rotated at `max_size_mb` (MiB; 0 means 100). Of the rotated ones
    `max_backups` are kept, and none that is older than `max_age_days`; 0 keeps all. In `dir`
    `max_age_days` counts for the files of earlier starts as well."""

    path: str | None = None
    dir: str | None = None
    max_size_mb: NotNegative = 100
    max_backups: NotNegative = 0
    max_age_days: NotNegative = 0

    def __post_init__(self) -> None:
        if self.path is not None and self.dir is not None:
            raise invalid(
                "`surface.cloud.server.audit.file` has both `path` and `dir`.", hint="Give one."
            )


class Audit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file with one line for each call of a tool. Tidegate's own audit log is another, which
    this does not change. While it cannot be written, `strict` runs no change and answers no read,
    `strict_mutations` answers reads, and `best_effort` goes on."""

    disabled: bool = False
    failure_mode: Literal["strict", "strict_mutations", "best_effort"] = "strict"
    sink: Literal["file"] = "file"
    file: AuditFile = AuditFile()


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The server. `name`, `version` and `description` are what it says of itself to clients.

    `transport` (`stdio` or `http`), `address`, `scheme`, `tls_cert_file` and `tls_key_file` are
    used for `--stdio`, `--http`, `--tls-cert` and `--tls-key`, and cannot be given as well. A call
    waits and runs for `request_timeout` at most; `max_concurrent_requests` run at once.

    `mode` says what happens to statements that change something: `read_only` refuses them, `safe`
    has a person approve each, `delete_safe` those with DELETE and EXEC, `full_access` none. The
    older `read_only = true` means that mode; `mode` wins. `render` is the form of the text of
    results.
    """

    name: str | None = None
    version: str | None = None
    description: str | None = None
    transport: Literal["stdio", "http"] | None = None
    address: str | None = None
    scheme: Literal["http", "https"] | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    transport_cfg: dict[str, Any] = {}
    max_concurrent_requests: Count = 100
    request_timeout: str = "30s"
    mode: Mode | None = None
    read_only: bool | None = None
    render: Literal["markdown", "json"] = "markdown"
    audit: Audit = Audit()

    def __post_init__(self) -> None:
        seconds(self.request_timeout, "surface.cloud.server.request_timeout")
        if self.transport_cfg:
            raise invalid(
                "`surface.cloud.server.transport_cfg` is not supported: no transport here has"
                " settings of that form.",
                hint="Remove it.",
            )
        self._check_tls()

    def _check_tls(self) -> None:
        of_http = {
            "address": self.address,
            "scheme": self.scheme,
            "tls_cert_file": self.tls_cert_file,
            "tls_key_file": self.tls_key_file,
        }
        given = [name for name, value in of_http.items() if value is not None]
        if self.transport == "stdio" and given:
            raise invalid(
                f"`surface.cloud.server.{given[0]}` is for HTTP, and"
                " `surface.cloud.server.transport` is `stdio`.",
                hint="Remove one of them.",
            )
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            missing = "tls_key_file" if self.tls_key_file is None else "tls_cert_file"
            raise invalid(
                "HTTPS needs a certificate and its key:"
                f" `surface.cloud.server.{missing}` is missing."
            )
        if self.scheme == "https" and self.tls_cert_file is None:
            raise invalid(
                "`surface.cloud.server.scheme` is `https`, and"
                " `surface.cloud.server.tls_cert_file` is missing."
            )
        if self.scheme == "http" and self.tls_cert_file is not None:
            raise invalid(
                "`surface.cloud.server.scheme` is `http`, and"
                " `surface.cloud.server.tls_cert_file` is for https.",
                hint="Remove one of them.",
            )

    @property
    def uses_http(self) -> bool:
        """Whether these settings ask for HTTP: by `transport`, or by what only HTTP has."""
        return self.transport == "http" or (
            self.transport is None
            and any((self.address, self.scheme, self.tls_cert_file, self.tls_key_file))
        )

    @property
    def effective_mode(self) -> Mode:
        """`mode`, else `read_only` if that is set, else `safe`."""
        if self.mode is not None:
            return self.mode
        return "read_only" if self.read_only else "safe"

    @property
    def request_timeout_s(self) -> float:
        return seconds(self.request_timeout, "surface.cloud.server.request_timeout")


class Backend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What runs the statements: this process, or with a `dsn` the server that it names, as --proxy
    does. At most `max_connections` statements run at once; one more waits for `connection_timeout`,
    which is also the time to connect. Each runs for `query_timeout` at most.

    `type` is `stackql`. `app_name` is what this server calls itself to the backing server
    (`application_name`). A password in the `dsn` is a reference: `${ENV:NAME}`, `${FILE:/path}`.
    """

    type: Literal["stackql"] = "stackql"
    app_name: str | None = None
    dsn: str | None = None
    max_connections: Count = 10
    connection_timeout: str = "10s"
    query_timeout: str = "30s"

    def __post_init__(self) -> None:
        for name in ("connection_timeout", "query_timeout"):
            seconds(getattr(self, name), f"surface.cloud.backend.{name}")
        try:
            refuse_literal(self.dsn or "")
        except TidegateError as error:
            raise invalid(
                "`surface.cloud.backend.dsn` holds a secret itself.", hint=error.hint
            ) from None
        if self.app_name not in (None, "", "stackql") and self.proxied_dsn is None:
            raise invalid(
                "`surface.cloud.backend.app_name` is for a backing server, and there is no"
                " `surface.cloud.backend.dsn`.",
                hint="Remove it, or add the `dsn`.",
            )

    @property
    def proxied_dsn(self) -> str | None:
        """The DSN of the backing server; None if this process runs the statements."""
        return None if self.dsn in (None, "", "stackql://localhost") else self.dsn

    @property
    def connection_timeout_s(self) -> float:
        return seconds(self.connection_timeout, "surface.cloud.backend.connection_timeout")

    @property
    def query_timeout_s(self) -> float:
        return seconds(self.query_timeout, "surface.cloud.backend.query_timeout")


class CloudSurfaceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is particular to the surface `cloud`. `server`, `backend` and the lists are those of the
    document's configuration, which may also be the whole settings.

    `enabled_tools` and `enabled_prompts` leave only what they name; empty, all. `source` is the
    source that statements run on, needed only where a caller sees several of the engine `cloud`. A
    result has `default_rows` rows where a call names no `row_limit`. `extended` adds the tools that
    the document does not have.
    """

    server: Server = Server()
    backend: Backend = Backend()
    enabled_tools: tuple[str, ...] = ()
    enabled_prompts: tuple[str, ...] = ()
    enabled_resources: tuple[str, ...] = ()
    disable_instructions: bool = False
    query_library: dict[str, Any] = {}
    source: str | None = None
    default_rows: Count = 1_000
    extended: bool = False

    def __post_init__(self) -> None:
        if self.query_library:
            raise invalid(
                "`surface.cloud.query_library` is not supported: this server has no library of"
                " queries.",
                hint="Remove it.",
            )
        if self.enabled_resources:
            raise invalid(
                "`surface.cloud.enabled_resources` names resources, and this surface has none.",
                hint="Remove it.",
            )

    @property
    def mode(self) -> Mode:
        return self.server.effective_mode


def statement_rules(settings: CloudSurfaceSettings) -> StatementRules:
    """What the mode says of statements on every source of the engine `cloud`, whatever surface or
    edge they come through."""
    return RULES[settings.mode]


def settings_of(config: Config) -> CloudSurfaceSettings:
    """The surface's own settings. Raises: TidegateError CONFIG_INVALID."""
    return convert_table(config.surface.get("cloud", {}), CloudSurfaceSettings, "surface.cloud")
