"""Reads the configuration of pgEdge's Postgres MCP server as settings of ours.

Each of its keys is mapped to a setting, refused by its name with what to do instead, or noted as
one that has no effect here. Keys that are switched off need nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from tidegate.config.errors import invalid
from tidegate.config.loading import Note, SettingsFormat
from tidegate.errors import TidegateError
from tidegate.paths import expand
from tidegate.products.pgedge.environment import postgres_url

ValueT = TypeVar("ValueT")

_OWN_TABLES = frozenset({"database", "databases", "llm", "anthropic", "embedding", "knowledgebase"})
_OWN_NAMES = _OWN_TABLES | {
    "builtins", "secret_file", "custom_definitions_path", "data_dir", "trace_file",
}  # fmt: skip
_REFERENCE_HINT = "Write `${ENV:NAME}` or `${FILE:/path}` in its place."
_TOOLS = (
    "query_database", "get_schema_info", "similarity_search", "generate_embedding",
)  # fmt: skip
_PROMPTS = (
    "explore_database", "setup_semantic_search", "diagnose_query_issue", "design_schema",
)  # fmt: skip
_LONGEST_S = 600
_DURATION = r"(\d+)(ms|s|m|h)?"
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, None: 1}


_VARIABLES: dict[str, tuple[type, tuple[str, ...]]] = {
    "HTTP_ENABLED": (bool, ("http.enabled",)),
    "HTTP_ADDRESS": (str, ("http.address",)),
    "TLS_ENABLED": (bool, ("http.tls.enabled",)),
    "TLS_CERT_FILE": (str, ("http.tls.cert_file",)),
    "TLS_KEY_FILE": (str, ("http.tls.key_file",)),
    "TLS_CHAIN_FILE": (str, ("http.tls.chain_file",)),
    "AUTH_ENABLED": (bool, ("http.auth.enabled",)),
    "AUTH_TOKEN_FILE": (str, ("http.auth.token_file",)),
    "AUTH_USER_FILE": (str, ("http.auth.user_file",)),
    "AUTH_MAX_FAILED_ATTEMPTS_BEFORE_LOCKOUT": (
        int, ("http.auth.max_failed_attempts_before_lockout",),
    ),
    "AUTH_RATE_LIMIT_WINDOW_MINUTES": (int, ("http.auth.rate_limit_window_minutes",)),
    "AUTH_RATE_LIMIT_MAX_ATTEMPTS": (int, ("http.auth.rate_limit_max_attempts",)),
    "LLM_ENABLED": (bool, ("llm.enabled",)),
    "LLM_PROVIDER": (str, ("llm.provider",)),
    "LLM_MODEL": (str, ("llm.model",)),
    "EMBEDDING_ENABLED": (bool, ("embedding.enabled",)),
    "EMBEDDING_PROVIDER": (str, ("embedding.provider",)),
    "EMBEDDING_MODEL": (str, ("embedding.model",)),
    "ANTHROPIC_BASE_URL": (str, ("llm.anthropic_base_url",)),
    "OPENAI_BASE_URL": (str, ("llm.openai_base_url", "embedding.openai_base_url")),
    "VOYAGE_BASE_URL": (str, ("embedding.voyage_base_url",)),
    "OLLAMA_URL": (str, ("llm.ollama_url", "embedding.ollama_url")),
}  # fmt: skip
"""Variables of pgEdge's server without `PGEDGE_`, and the keys of its file that they replace."""
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What `PGEDGE_HTTP_*`, `PGEDGE_TLS_*`, `PGEDGE_AUTH_*`, `PGEDGE_LLM_*` and
    `PGEDGE_EMBEDDING_*` say, as a file of pgEdge's server would have it; empty: nothing.

    Keys of models are read by `translate`, and a database by `postgres_environment`.

    Raises: TidegateError CONFIG_INVALID for a value of another kind.
    """
    found: dict[str, Any] = {}
    for word, (kind, paths) in _VARIABLES.items():
        name = f"PGEDGE_{word}"
        text = environment.get(name, "")
        if not text:
            continue
        value: Any = text
        if kind is bool:
            value = _TRUTH.get(text.lower())
        elif kind is int:
            value = int(text) if text.isascii() and text.isdigit() else None
        if value is None:
            raise invalid(f"${name} cannot be {text[:40]!r}.", hint="Correct or unset it.")
        for path in paths:
            *sections, key = path.split(".")
            table = found
            for section in sections:
                table = table.setdefault(section, {})
            table[key] = value
    return found


def is_pgedge(settings: object) -> bool:
    """Whether parsed settings are those of pgEdge's server: ours do not have its tables."""
    if not isinstance(settings, dict):
        return False
    names = cast("dict[Any, Any]", settings)
    return bool(_OWN_NAMES & names.keys()) or isinstance(names.get("http"), dict)


def translate(
    settings: dict[str, Any], environment: Mapping[str, str], note: Note
) -> dict[str, Any]:
    """The same as settings of ours, not checked yet. `note` gets one line for each key that has no
    effect here. Raises: TidegateError CONFIG_INVALID that names a key which cannot be kept."""
    top = _Section(settings, "", note)
    found: dict[str, Any] = {"surfaces": ["postgres"]}
    _read_http(top.section("http"), found)
    databases = top.sections("databases")
    if not databases and (single := top.section("database")):
        databases = [single]
    sources = [_source(each, environment) for each in databases]
    if sources:
        found["sources"] = sources
        found["surface"] = {"postgres": {"source": sources[0]["name"]}}
    if embeddings := _embeddings(top.section("embedding"), environment):
        found["embeddings"] = embeddings
    model = _model(top.section("llm"), environment) or _anthropic(
        top.section("anthropic"), environment
    )
    if model:
        found["language"] = {"model": model}
    _read_builtins(top.section("builtins"))
    knowledge = top.section("knowledgebase")
    knowledge.refuse("enabled", "There is no search of a knowledge base here.", "Set it to false.")
    knowledge.drop()
    top.refuse(
        "custom_definitions_path",
        "Definitions of that form are not read.",
        "Write prompts as TOML files in a folder, and name it in `surface.postgres.prompts`.",
    )
    top.ignore("secret_file", "secrets are references to variables and files")
    top.ignore("data_dir", "state is kept where --state or TIDEGATE_STATE says")
    top.ignore("trace_file", "every call is in the audit log: tidegate audit tail")
    top.end()
    return found


class _Section:
    """A table of the file. What is not taken from it is unknown at its `end`."""

    def __init__(self, values: dict[str, Any], path: str, note: Note) -> None:
        self._values = dict(values)
        self._path = path
        self._note = note

    def __bool__(self) -> bool:
        return bool(self._values)

    def at(self, name: str) -> str:
        """The path of a key in the file."""
        return f"{self._path}.{name}" if self._path else name

    def take(self, name: str, kind: type[ValueT], default: ValueT) -> ValueT:
        """The value of a key. Raises: TidegateError CONFIG_INVALID if it is of another type."""
        value = self._values.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            # What should be a text may be a secret, such as a password of digits alone.
            shown = f"of the type {type(value).__name__}" if kind is str else repr(str(value)[:40])
            raise invalid(f"`{self.at(name)}` cannot be {shown}.")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        values = self.take(name, list, [])
        if not all(isinstance(each, str) for each in values):
            raise invalid(f"`{self.at(name)}` is not a list of texts.")
        return values

    def section(self, name: str) -> _Section:
        """The table under a key; empty if there is none."""
        return _Section(self.take(name, dict, {}), self.at(name), self._note)

    def sections(self, name: str) -> list[_Section]:
        """The tables in the list under a key."""
        found: list[_Section] = []
        for number, values in enumerate(self.take(name, list, [])):
            path = f"{self.at(name)}[{number}]"
            if not isinstance(values, dict):
                raise invalid(f"`{path}` is not a table of names and values.")
            found.append(_Section(cast("dict[str, Any]", values), path, self._note))
        return found

    def refuse(self, name: str, problem: str, hint: str) -> None:
        """Raises: TidegateError CONFIG_INVALID if the key is set, and not to false or nothing."""
        if self._values.pop(name, None):
            raise invalid(f"`{self.at(name)}` cannot be kept: {problem}", hint=hint)

    def ignore(self, name: str, reason: str) -> None:
        """Note that the key has no effect, if it is set."""
        if self._values.pop(name, None):
            self._note(f"`{self.at(name)}` has no effect: {reason}")

    def refuse_near(self, known: Sequence[str]) -> None:
        """Raises: TidegateError CONFIG_INVALID for a key that is left and is nearly a known one."""
        from difflib import get_close_matches

        for name in self._values:
            if near := get_close_matches(str(name), known, 1, 0.85):
                raise invalid(
                    f"There is no key `{self.at(name)}`.", hint=f"Did you mean `{near[0]}`?"
                )

    def drop(self) -> None:
        """Take no more of it: it is switched off."""
        self._values.clear()

    def end(self) -> None:
        """Raises: TidegateError CONFIG_INVALID for a key that is left."""
        for name in self._values:
            raise invalid(
                f"`{self.at(name)}` is not a key of pgEdge's configuration that is known here.",
                hint="Take it out, or look in docs/howto/come-from-pgedge.md for what to use.",
            )


def _read_http(http: _Section, found: dict[str, Any]) -> None:
    enabled = http.take("enabled", bool, False)
    auth, tls, client = (http.section(name) for name in ("auth", "tls", "client_ip"))
    needs_token = auth.take("enabled", bool, True)
    host, _, port = http.take("address", str, ":8080").rpartition(":")
    if enabled:
        found["http"] = f"{host or ('0.0.0.0' if needs_token else '127.0.0.1')}:{port}"  # noqa: S104
        found["auth"] = needs_token
    if origins := http.texts("allowed_origins"):
        found["allowed_origins"] = origins
    if token_file := auth.take("token_file", str, ""):
        found["token_files"] = [token_file]
    auth.refuse(
        "user_file",
        "There are no users with passwords here.",
        "Give each of them a token: tidegate token create NAME --scope readOnly.",
    )
    auth.ignore("max_failed_attempts_before_lockout", "there are no users that could be locked out")
    _read_lockout(auth, found)
    auth.end()
    _read_tls(tls, found)
    if client.take("source", str, "socket") == "header":
        header = client.take("header", str, "X-Real-IP")
        if header.lower() not in ("x-forwarded-for", "forwarded"):
            raise invalid(
                f"`{client.at('header')}` cannot be kept: {header[:40]!r} is not read.",
                hint="Let the proxy write X-Forwarded-For or Forwarded.",
            )
        found["trusted_proxies"] = client.texts("trusted_proxies")
    client.take("header", str, "")
    client.texts("trusted_proxies")
    client.end()
    http.end()


def _read_lockout(auth: _Section, found: dict[str, Any]) -> None:
    minutes = auth.take("rate_limit_window_minutes", int, 0)
    failures = auth.take("rate_limit_max_attempts", int, 0)
    if minutes or failures:
        window_s = (minutes or 15) * 60
        found["lockout"] = {"failures": failures or 10, "window_s": window_s, "lock_s": window_s}


def _read_tls(tls: _Section, found: dict[str, Any]) -> None:
    if tls.take("enabled", bool, False):
        found["tls"] = {
            "cert": tls.take("cert_file", str, "./server.crt"),
            "key": tls.take("key_file", str, "./server.key"),
        }
        tls.refuse(
            "chain_file",
            "The chain is read from the file of the certificate.",
            "Put it after the certificate in `cert_file`.",
        )
        tls.end()
    tls.drop()


def _source(database: _Section, environment: Mapping[str, str]) -> dict[str, Any]:
    name = database.take("name", str, "default")
    url = database.take("connection_string", str, "") or _url(database, environment)
    database.refuse(
        "allow_writes",
        "The surface `postgres` only reads.",
        "Set it to false. For writes serve the surface core or workbench.",
    )
    database.refuse(
        "available_to_users",
        "There are no users here.",
        "Bind tokens to the database: `database` in the token file, or "
        "tidegate token create NAME --source DATABASE.",
    )
    database.refuse(
        "allowed_pl_languages", "There are no tools of your own in SQL.", "Take it out."
    )
    database.ignore("allow_llm_switching", "a caller sees the databases that its token may use")
    for tuning in (
        "pool_max_conns", "pool_min_conns", "pool_max_conn_idle_time", "pool_max_conn_lifetime",
        "pool_health_check_period",
    ):  # fmt: skip
        database.ignore(tuning, "the option `pool` of a source's URL bounds its connections")
    database.ignore("metadata_ttl", "the schema is read again when it has changed")
    database.end()
    return {"name": name, "url": url}


def _url(database: _Section, environment: Mapping[str, str]) -> str:
    host, port = database.take("host", str, ""), database.take("port", int, 5432)
    places = [
        (each.take("host", str, "localhost"), each.take("port", int, 5432))
        for each in database.sections("hosts")
    ]
    options: dict[str, str] = {}
    for name in ("sslmode", "sslcert", "sslkey", "sslrootcert", "target_session_attrs"):
        if value := database.take(name, str, ""):
            options[name] = value
    if timeout := database.take("connect_timeout", str, ""):
        options["connect_timeout"] = str(max(1, round(_seconds(database, timeout))))
    user = database.take("user", str, "")
    variable = "PGEDGE_DB_PASSWORD"
    return postgres_url(
        user=user,
        password=_secret(database, "password")
        or (f"${{ENV:{variable}}}" if user and environment.get(variable) else ""),
        places=places or [(host or "localhost", port)],
        database=database.take("database", str, "postgres"),
        options=options,
    )


def _seconds(section: _Section, text: str) -> float:
    found = re.fullmatch(_DURATION, text)
    if found is None:
        raise invalid(
            f"`{section.at('connect_timeout')}` is not a time span: {text[:40]!r}.",
            hint="Write it like 10s.",
        )
    return int(found[1]) * _UNIT_S[found[2]]


def _secret(section: _Section, name: str) -> str:
    """A reference to a secret; empty if there is none. Raises: TidegateError for the secret."""
    value = section.take(name, str, "")
    if value and not re.fullmatch(r"\$\{(ENV|FILE):[^}]+\}", value):
        raise invalid(f"`{section.at(name)}` holds a secret.", hint=_REFERENCE_HINT)
    return value


def _key(section: _Section, provider: str, environment: Mapping[str, str]) -> dict[str, str]:
    """`api_key` as a reference: that of the file, a file's, or that of the provider's variable."""
    key = _secret(section, f"{provider}_api_key")
    if file := section.take(f"{provider}_api_key_file", str, ""):
        key = key or f"${{FILE:{expand(file)}}}"
    for variable in (f"PGEDGE_{provider.upper()}_API_KEY", f"{provider.upper()}_API_KEY"):
        if not key and environment.get(variable):
            key = f"${{ENV:{variable}}}"
    return {"api_key": key} if key else {}


def _timeout(section: _Section) -> dict[str, float]:
    """`timeout_s`; 0, which is without a limit there, is the longest that can be set here."""
    seconds = section.take("per_attempt_timeout", int, 60)
    return {"timeout_s": float(min(seconds or _LONGEST_S, _LONGEST_S))}


def _embeddings(section: _Section, environment: Mapping[str, str]) -> dict[str, Any]:
    if not section.take("enabled", bool, False):
        section.drop()
        return {}
    provider = _provider(section, ("openai", "voyage", "ollama"), "ollama")
    settings: dict[str, Any] = {"provider": provider, **_timeout(section)}
    if model := section.take("model", str, ""):
        settings["model"] = model
    if provider == "ollama":
        address = section.take("ollama_url", str, "")
    else:
        settings |= _key(section, provider, environment)
        address = section.take(f"{provider}_base_url", str, "")
    if address:
        settings["base_url"] = address.rstrip("/").removesuffix("/embeddings")
    section.drop()  # the keys of the other providers
    return settings


def _model(section: _Section, environment: Mapping[str, str]) -> dict[str, Any]:
    if not section.take("enabled", bool, False):
        section.drop()
        return {}
    provider = _provider(section, ("anthropic", "openai", "ollama"), "anthropic")
    settings: dict[str, Any] = {
        "provider": provider,
        "model": section.take("model", str, "claude-sonnet-4-5"),
        "max_tokens": section.take("max_tokens", int, 4_096),
        **_timeout(section),
    }
    if provider == "ollama":
        address = section.take("ollama_url", str, "")
    else:
        settings |= _key(section, provider, environment)
        address = section.take(f"{provider}_base_url", str, "").rstrip("/")
        address += "" if not address or address.endswith("/v1") else "/v1"
    if address:
        settings["base_url"] = address
    section.drop()
    return settings


def _anthropic(section: _Section, environment: Mapping[str, str]) -> dict[str, Any]:
    """The model of the versions that wrote SQL themselves."""
    if not section:
        return {}
    key = _secret(section, "api_key")
    if not key and environment.get("ANTHROPIC_API_KEY"):
        key = "${ENV:ANTHROPIC_API_KEY}"
    model = section.take("model", str, "claude-sonnet-4-5")
    section.end()
    return {"provider": "anthropic", "model": model, **({"api_key": key} if key else {})}


def _provider(section: _Section, known: Sequence[str], default: str) -> str:
    provider = section.take("provider", str, default)
    if provider not in known:
        raise invalid(
            f"`{section.at('provider')}` cannot be {provider[:40]!r}.",
            hint=f"Choose from {', '.join(known)}.",
        )
    return provider


def _read_builtins(builtins: _Section) -> None:
    for kind, fixed in (
        ("tools", _TOOLS),
        ("resources", ("system_info",)),
        ("prompts", _PROMPTS),
    ):
        section = builtins.section(kind)
        for name in fixed:
            if not section.take(name, bool, True):
                raise _always_there(section.at(name))
        section.refuse_near(fixed)
        section.drop()
    builtins.end()


def _always_there(path: str) -> TidegateError:
    return invalid(
        f"`{path}` cannot be kept: what the surface `postgres` has is always there.",
        hint="Take it out. What callers may do is said by their tokens and the rules of a source.",
    )


FORMAT = SettingsFormat(is_pgedge, translate, in_files_alone=True)
