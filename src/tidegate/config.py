"""The settings: one strict model, which `loading.py` fills. Applies none of them.

Flags of the command line are laid over a loaded `Config` with `msgspec.structs.replace`, so that
both pass the same checks. Engines and surfaces named here are checked where they are known.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from tidegate.errors import Code, GateError
from tidegate.secrets import refuse_literal
from tidegate.sources import Mask, RowFilter, RunAs

SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
OAUTH_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class RunAsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who a caller is to the database: see `sources.RunAs`."""

    role: str | None = None
    roles: dict[str, str] = {}
    variables: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.role is None and not self.roles and not self.variables:
            raise invalid("`run_as` names no role and no variable.")

    @property
    def run_as(self) -> RunAs:
        return RunAs(self.role, tuple(self.roles.items()), tuple(self.variables.items()))


class SourceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One source. `url` may refer to secrets but never holds one.

    `approval`: a person may answer in the client or the inbox, or in the inbox alone.
    `unattended`: what happens to what a person should see when the client can show nobody a
    question. `unqualified`: UPDATE and DELETE without WHERE. `destructive_scope`: what DROP,
    TRUNCATE and ALTER...DROP need. `masks` hide columns, `filters` hide rows.
    `run_as` says who a caller is to the database.
    """

    name: str
    url: str
    external_access: Literal["blocked", "readOnly", "readWrite"] = "readOnly"
    ai_policy: Literal["alwaysAllow", "askEachTime", "never"] = "alwaysAllow"
    safe_mode: Literal["silent", "alert", "alertFull", "safeMode", "safeModeFull", "readOnly"] = (
        "silent"
    )
    tags: tuple[str, ...] = ()
    approval: Literal["any", "inbox"] = "any"
    unattended: Literal["deny", "allow"] = "deny"
    unqualified: Literal["confirm", "allow", "deny"] = "confirm"
    destructive_scope: Literal["readWrite", "fullAccess"] = "readWrite"
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    run_as: RunAsSettings | None = None

    def __post_init__(self) -> None:
        check_source_name(self.name)
        refuse_literal(self.url)
        check_rules(self.masks, self.filters)


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Budgets of a call: what it gets unasked, and the most it may ask for."""

    default_rows: Count = 500
    max_rows: Count = 10_000
    timeout_s: Seconds = 30.0
    max_timeout_s: Seconds = 300.0
    max_bytes: Count = 4_194_304

    def __post_init__(self) -> None:
        if self.default_rows > self.max_rows:
            raise invalid("`limits.default_rows` is above `limits.max_rows`.")
        if self.timeout_s > self.max_timeout_s:
            raise invalid("`limits.timeout_s` is above `limits.max_timeout_s`.")


class OAuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of an authorization server, taken beside Tidegate's own (OAuth 2.1).

    `resource` is the URL of this server's `/mcp` as its clients know it; a token must carry it, or
    one of `audience`, as its audience. `jwks_url` is found in the issuer's metadata if it is not
    given. `scopes` maps the server's scopes to ours; a token with none of them is refused.
    `sources_claim` and `tags_claim` name claims with the allowlist, `tables_claim` one with that of
    tables; a token that lacks a claim that is named here sees nothing by it.
    """

    issuer: str
    resource: str
    scopes: dict[str, Literal["readOnly", "readWrite", "fullAccess"]]
    audience: tuple[str, ...] = ()
    jwks_url: str | None = None
    algorithms: tuple[
        Literal[
            "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
        ],
        ...,
    ] = ("RS256", "ES256", "EdDSA")
    sources_claim: str | None = None
    tags_claim: str | None = None
    tables_claim: str | None = None

    def __post_init__(self) -> None:
        check_issuer_url(self.issuer, "oauth.issuer")
        check_issuer_url(self.resource, "oauth.resource")
        if self.jwks_url is not None:
            check_issuer_url(self.jwks_url, "oauth.jwks_url")
        if not self.resource.endswith("/mcp"):
            raise invalid(
                f"`oauth.resource` is `{self.resource[:80]}`, which does not end with `/mcp`.",
                hint="Write the address of this server as its clients do.",
            )
        if not self.scopes or not self.algorithms:
            raise invalid("`oauth.scopes` and `oauth.algorithms` need an entry each.")
        for scope in self.scopes:
            if not OAUTH_SCOPE.fullmatch(scope):
                raise invalid(f"`{scope[:80]}` cannot be a scope of an authorization server.")


def resource_url(settings: OAuthSettings, path: str) -> str:
    """How clients know what is served under `path`, such as `/mcp/core`."""
    return settings.resource.removesuffix("/mcp") + path


class AuditSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How calls are put on record, and what happens to one that cannot be.

    `failure_mode`: while the log cannot be written, `strict` runs nothing that could change data
    and answers no read; `strict_mutations` answers reads and refuses the rest; `best_effort` goes
    on. How many events are missing is put on record when the log can be written again.
    A checkpoint is signed after `checkpoint_lines`, after `checkpoint_s`, and at the end. `anchor`
    is a file, best on another disk, that gets each of them as well. A segment is full at
    `segment_bytes` or at `segment_age_s`; one whose last line is older than `keep_days` is
    removed, if that is set.
    """

    failure_mode: Literal["strict", "strict_mutations", "best_effort"] = "strict"
    checkpoint_lines: Count = 10_000
    checkpoint_s: Seconds = 10.0
    anchor: str | None = None
    segment_bytes: Count = 67_108_864
    segment_age_s: Seconds = 604_800.0
    keep_days: Count | None = None


class ApprovalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a person is asked about a call.

    `grant_ttl_s` is how long an approval may lie unused. A call that asks in the inbox waits
    `wait_s` for the answer before it is told that it needs one. `dry_run`: where it can be done
    without harm, the person sees what would change.
    """

    grant_ttl_s: Seconds = 86_400.0
    wait_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    dry_run: bool = True


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `tidegate bridge` may do at a server on HTTP that listens on loopback.

    `scope` is of its own token, which is renewed within each hour; with `sources`, `tags` or both
    it sees only those sources. A server that a bridge has started ends after `idle_s` without a
    request. Without `enabled` no bridge finds the server.
    """

    enabled: bool = True
    scope: Literal["readOnly", "readWrite", "fullAccess"] = "readOnly"
    sources: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    idle_s: Seconds = 900.0


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `http` None means stdio; `auth` False means loopback only and read-only.
    With `pairing` a client may ask for a token over HTTP, which a person then approves.

    `allowed_hosts` and `allowed_origins` are those accepted beside the loopback names.
    `agent_accounts` are accounts of this machine that agents run as: none of them may be able to
    write the settings or the state. `export_directory` None means the user's Downloads; `extended`
    offers the workbench's newer tools beside the 19 of its document. `masks` and `filters` here
    bind every source, or those of their `tag`.
    """

    sources: tuple[SourceSettings, ...] = ()
    surfaces: tuple[str, ...] = ("workbench",)
    http: str | None = None
    auth: bool = True
    pairing: bool = True
    oauth: OAuthSettings | None = None
    allow_writes: bool = False
    state: str | None = None
    limits: LimitSettings = LimitSettings()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    http_error_status: Literal["auto", "seed", "compat"] = "auto"
    agent_accounts: tuple[str, ...] = ()
    export_directory: str | None = None
    extended: bool = False
    body_limit_bytes: Count = 10_485_760
    audit: AuditSettings = AuditSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    bridge: BridgeSettings = BridgeSettings()
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()

    def __post_init__(self) -> None:
        check_rules(self.masks, self.filters)
        names: set[str] = set()
        for source in self.sources:
            if source.name in names:
                raise invalid(f"Two sources are named `{source.name}`.")
            names.add(source.name)
        if self.oauth is not None and not self.auth:
            raise invalid("With `oauth` there is authentication: `auth` cannot be false.")
        if self.http is not None:
            host, _ = http_address(self.http)
            if not self.auth and host not in LOOPBACK:
                raise invalid(
                    f"Without authentication the server listens on loopback only, not `{host}`.",
                    hint="Use 127.0.0.1, or leave authentication on.",
                )


def check_rules(masks: tuple[Mask, ...], filters: tuple[RowFilter, ...]) -> None:
    """Raises: GateError CONFIG_INVALID for a rule whose table or column cannot be made out."""
    for mask in masks:
        if mask.column.count(".") not in (1, 2) or not all(mask.column.split(".")):
            raise invalid(
                f"`{mask.column[:80]}` names no column to mask.",
                hint="Write table.column or schema.table.column.",
            )
    for rule in filters:
        if rule.table.count(".") > 1 or not all(rule.table.split(".")):
            raise invalid(
                f"`{rule.table[:80]}` names no table to filter.",
                hint="Write table or schema.table.",
            )
        if not rule.where.strip():
            raise invalid(f"The row filter on `{rule.table}` has no condition.")


def check_source_name(name: str) -> None:
    """Raises: GateError CONFIG_INVALID unless the name can stand for a source."""
    if not SOURCE_NAME.fullmatch(name):
        raise invalid(
            f"`{name[:80]}` cannot name a source.",
            hint="Use 1 to 64 letters, digits, `_`, `.` or `-`, the first a letter or a digit.",
        )


def check_issuer_url(url: str, setting: str) -> None:
    """Raises: GateError CONFIG_INVALID unless it is https, or http on loopback, and plain."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not (host and secure and plain and url.isascii() and url.isprintable() and '"' not in url):
        raise invalid(
            f"`{setting}` is not an address that can be trusted: `{url[:80]}`.",
            hint="Use https, without a query; http works for this machine alone.",
        )


def http_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` (`[::1]:8080` for IPv6; port 0 picks a free one).

    Raises: GateError CONFIG_INVALID.
    """
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise invalid(
            f"`{text}` is not an HTTP address.", hint="Write HOST:PORT, such as 127.0.0.1:7878."
        )
    return host, int(port)


def invalid(message: str, hint: str | None = None) -> GateError:
    """A setting that cannot be used."""
    return GateError(Code.CONFIG_INVALID, message, hint=hint)
