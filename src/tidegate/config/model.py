"""One strict model of all settings, which `loading.py` fills. Applies no setting.

Options of the command line replace values of a loaded `Config` (`msgspec.structs.replace`), so that
both pass the same checks. Engines and surfaces named here are checked where they are known.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from tidegate.config.addresses import (
    check_allowed_host,
    check_allowed_origin,
    check_proxies_named,
    check_proxy,
    http_address,
    is_this_machine,
    shares_addresses,
)
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.config.errors import invalid
from tidegate.config.oauth import OAuthSettings
from tidegate.config.sections import Section, SectionT
from tidegate.config.sources import (
    SourceSettings,
    TemporarySourceSettings,
    check_directories,
    check_rules,
)
from tidegate.config.webhook import WebhookSettings
from tidegate.model.source_settings import Mask, RowFilter


class UndoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how large changes are kept, on the sources that have `undo` on.

    Each change is encrypted with a key of its own; after `keep_days` the key and the rows are
    removed. A change whose rows take more than `max_bytes` is not kept. All together take at most
    `total_bytes` of the state: the oldest go first.
    """

    keep_days: Annotated[float, msgspec.Meta(gt=0)] = 7.0
    max_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=268_435_456)] = 16_777_216
    total_bytes: Annotated[int, msgspec.Meta(ge=1_024)] = 1_073_741_824


Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one call. A caller that asks for more than a `max_` setting gets that value
    instead. A reply says where a limit has cut it.
    """

    default_rows: Count = 500
    """How many rows of a result `workbench` returns at once if the caller names no number. `core`
    returns 100."""
    max_rows: Count = 10_000
    """The most rows of a result that a caller may ask for at once. Exports have limits of their
    own."""
    timeout_s: Seconds = 30.0
    """How many seconds a statement may run if the caller names no time. Waiting for a free place
    counts. Then the database stops the statement: `limit.time`."""
    max_timeout_s: Seconds = 300.0
    """The longest time in seconds that a caller may ask for."""
    max_bytes: Count = 4_194_304
    """The most bytes of rows in one reply, as JSON. The rows before the first one that does not fit
    are returned."""

    def __post_init__(self) -> None:
        if self.default_rows > self.max_rows:
            raise invalid("`limits.default_rows` is above `limits.max_rows`.")
        if self.timeout_s > self.max_timeout_s:
            raise invalid("`limits.timeout_s` is above `limits.max_timeout_s`.")


class TaskSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Calls that last. After `after_s` seconds, or as soon as it waits for a person, a call of a
    client that knows tasks becomes one. Any other client gets a reply after `answer_s`, which is to
    be less than it waits itself, and the call goes on. A result waits for `keep_s`; that is also
    the longest that a task waits for a person.
    """

    after_s: Seconds = 20.0
    answer_s: Seconds = 50.0
    keep_s: Seconds = 3_600.0


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


_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


class ApprovalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a person is asked about a call.

    `grant_ttl_s` is how long an approval may lie unused. A call that asks in the inbox waits
    `wait_s` for the answer before the reply says that it needs one. A form in the caller's client
    waits as long, or five minutes if that is 0. `dry_run`: where it can be done
    without harm, the person sees what would change.

    In the console an approval can be given for up to `grant_minutes` minutes and `grant_uses`
    calls. `four_eyes`: `own` takes no yes from the operator whose token asks, neither in the
    console nor in that operator's client nor at the command line; `always` takes none either for
    callers of whom no operator is the owner, so that there are two people to each call; `off` takes
    any. From the second operator on, `off` means `own`.

    `webhook`: a server of yours, or a channel of Slack or Teams, that gets a message when a call
    waits.
    """

    grant_ttl_s: Seconds = 86_400.0
    wait_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    dry_run: bool = True
    grant_minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 60
    grant_uses: Count = 20
    four_eyes: Literal["off", "own", "always"] = "off"
    webhook: WebhookSettings | None = None


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `tidegate bridge` may do at a server on HTTP on its machine.

    `scope` is of its own token, which is renewed within each hour; with `sources`, `tags` or both
    it sees only those sources, and with `tables` only these tables there. A bridge may ask for
    less. A server that a bridge has started ends after `idle_s` without a
    request. Without `enabled` no bridge finds the server.
    """

    enabled: bool = True
    scope: Literal["readOnly", "readWrite", "fullAccess"] = "readOnly"
    sources: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None
    idle_s: Seconds = 900.0


class ConsoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The console: pages at `/console` of the server on HTTP, for people with an account.

    `origin` is the address at which people reach it, such as `https://gate.example.com`. A console
    that others than this machine can reach needs it, and TLS here or at a trusted proxy.

    `source_folders` are the absolute paths of folders. An admin of all sources may add databases in
    files and folders of files in the console as far as they are below one of these.
    """

    enabled: bool = False
    origin: str | None = None
    source_folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_directories("console.source_folders", self.source_folders)


class LockoutSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often an address may fail to authenticate: `failures` within `window_s` lock it out for
    `lock_s` seconds. A valid token is accepted all the while."""

    failures: Count = 5
    window_s: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 60.0
    lock_s: Seconds = 300.0


class RequestRateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many requests over HTTP an address may send: `per_minute` in the long run, and `burst` at
    once. Without `per_minute` there is no limit. `/health` and `/ready` do not count; each server
    counts by itself."""

    per_minute: Count | None = None
    burst: Count = 60


class TlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files with which the server speaks HTTPS: `cert` with its certificate and after it the
    chain, `key` with the key, both PEM. They are read at the start and again on SIGHUP.
    """

    cert: str
    key: str


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `http` None means stdio; `auth` False means loopback only and read-only.
    With `pairing` a client may ask for a token over HTTP, which a person then approves.

    With `tls` the server speaks HTTPS, and plain HTTP no more. `token_files` are files with
    tokens, in addition to those that `tidegate token` manages; a change of them counts at once.

    `surfaces` are those that are served; the first is at `/mcp` and on stdio. If none is named,
    that is `core`, and over HTTP every surface has a path of its own. `stdio` serves on stdin and
    stdout in addition to `http`. When the server stops, running calls get `stop_grace_s` seconds to
    finish. With a balancer in front set `drain_delay_s` to a little more than the time between two
    of its checks: after SIGTERM `/ready` answers 503, and the server goes on for that long. While
    the state cannot be read no new call is let through, and running ones end after `state_grace_s`.
    With `log_format` `json` the log on stderr is one JSON object a line.

    So many `workers`, processes, serve the addresses together; one more starts and keeps them.
    Limits of sources and rates of requests are those of all together, and each has its part.

    `allowed_hosts` and `allowed_origins` are those accepted in addition to the loopback names.
    `trusted_proxies` are addresses and networks of proxies, such as `10.0.0.0/24`, of which
    `X-Forwarded-For` and `Forwarded` give the client's address. With `proxy_protocol` each of their
    connections to `http` begins with a header of the PROXY protocol, version 2, which gives it.
    `keep_alive_s` is how long the response to a call may be silent, for proxies that end one.
    `agent_accounts` are accounts of this machine that agents run as: no such account may be able to
    write the settings or the state. With `state_url` (postgresql://...) the state is in that
    database, which several servers share, and `state` holds the record and the keys of this one
    alone. `state_key` refers to a secret that they share: it seals the rows that give rights, and
    what is the same at all of them derives from it. `surface` has a section for each surface with
    settings of its own. `masks` and `filters` here bind every source, or those of
    their `tag`. Each product has a section of its own.
    """

    sources: tuple[SourceSettings, ...] = ()
    surfaces: tuple[str, ...] = ()
    surface: dict[str, dict[str, Any]] = {}
    http: str | None = None
    stdio: bool = False
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    drain_delay_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    stop_grace_s: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    state_grace_s: Annotated[float, msgspec.Meta(ge=2, le=600)] = 10.0
    log_format: Literal["text", "json"] = "text"
    auth: bool = True
    pairing: bool = True
    oauth: OAuthSettings | None = None
    tls: TlsSettings | None = None
    lockout: LockoutSettings = LockoutSettings()
    request_rate: RequestRateSettings = RequestRateSettings()
    token_files: tuple[str, ...] = ()
    allow_writes: bool = False
    state: str | None = None
    state_url: str | None = None
    state_key: str | None = None
    limits: LimitSettings = LimitSettings()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    proxy_protocol: bool = False
    agent_accounts: tuple[str, ...] = ()
    body_limit_bytes: Count = 10_485_760
    keep_alive_s: Seconds = 12.0
    audit: AuditSettings = AuditSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    undo: UndoSettings = UndoSettings()
    tasks: TaskSettings = TaskSettings()
    bridge: BridgeSettings = BridgeSettings()
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    temporary_sources: TemporarySourceSettings = TemporarySourceSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    console: ConsoleSettings = ConsoleSettings()
    sections: dict[str, Section] = {}

    def __post_init__(self) -> None:
        check_rules(self.masks, self.filters)
        names: set[str] = set()
        for source in self.sources:
            if source.name in names:
                raise invalid(f"Two sources are named `{source.name}`.")
            names.add(source.name)
        for proxy in self.trusted_proxies:
            check_proxy(proxy)
        if self.proxy_protocol:
            check_proxies_named("proxy_protocol", self.trusted_proxies)
        for host in self.allowed_hosts:
            check_allowed_host(host)
        for origin in self.allowed_origins:
            check_allowed_origin(origin)
        origin = self.console.origin
        if origin is not None and not _ORIGIN.fullmatch(origin):
            raise invalid(
                f"`console.origin` is `{origin[:80]}`, which is no origin.",
                hint="Write it like https://gate.example.com or https://gate.example.com:8443.",
            )
        if self.oauth is not None and not self.auth:
            raise invalid("With `oauth` there is authentication: `auth` cannot be false.")
        if self.http is not None:
            host, _ = http_address(self.http)
            if not self.auth and not is_this_machine(host):
                raise invalid(
                    f"Without authentication the server listens on loopback only, not `{host}`.",
                    hint="Use 127.0.0.1, or leave authentication on.",
                )
            if self.console.enabled:
                self._check_console(host)
        for section in self.sections.values():
            section.check(self)
        self._check_addresses()

    def section(self, kind: type[SectionT]) -> SectionT:
        """The section of a product; its defaults if the settings have none."""
        found = self.sections.get(kind.NAME)
        return found if isinstance(found, kind) else kind()

    @property
    def page_origins(self) -> tuple[str, ...]:
        """Where people reach the pages of this server, by a name that is not its own."""
        served = self.console
        return (served.origin.rstrip("/"),) if served.enabled and served.origin else ()

    def _check_addresses(self) -> None:
        """Of two that listen at one address one would get no connection, without an error."""
        taken: list[tuple[str, str, int]] = []
        sections = (
            (f"{name}.listen", section.listen_address) for name, section in self.sections.items()
        )
        for setting, address in (("http", self.http), *sections):
            if address is None:
                continue
            host, port = http_address(address)
            for other, at, its_port in taken:
                if port == its_port != 0 and shares_addresses(host, at):
                    raise invalid(
                        f"`{other}` and `{setting}` are both `{address}`."
                        if host == at
                        else f"`{setting}` is `{address}`, where `{other}` listens too.",
                        hint="Give each a port of its own.",
                    )
            taken.append((setting, host, port))

    def _check_console(self, host: str) -> None:
        origin = self.console.origin
        if is_this_machine(host):
            return
        if origin is None or not (self.tls is not None or self.trusted_proxies):
            raise invalid(
                f"The console would be reached at `{host}`, which is not this machine alone: that"
                " takes `console.origin`, and TLS here or at one of `trusted_proxies`.",
                hint="Set them, or let the server listen on 127.0.0.1.",
            )
        if not origin.startswith("https://"):
            raise invalid("`console.origin` must begin with https:// beyond this machine.")
