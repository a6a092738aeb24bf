"""pgEdge's configuration file: what its keys become, and which are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config.loading import convert_settings, load
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.settings import LanguageSettings
from tidegate.products.pgedge.settings_import import settings_of_environment, translate

WHOLE = """
http:
  enabled: true
  address: ":8080"
  allowed_origins: ["https://tools.example"]
  tls:
    enabled: true
    cert_file: /etc/pgedge/server.crt
    key_file: /etc/pgedge/server.key
    chain_file: ""
  auth:
    enabled: true
    token_file: /etc/pgedge/tokens.yaml
    user_file: ""
    max_failed_attempts_before_lockout: 0
    rate_limit_window_minutes: 15
    rate_limit_max_attempts: 10
  client_ip:
    source: header
    header: X-Forwarded-For
    trusted_proxies: [10.0.0.0/24]
databases:
  - name: shop
    host: db.example
    port: 5433
    database: shop
    user: reader@corp
    password: ${FILE:/etc/pgedge/shop.password}
    sslmode: verify-full
    sslrootcert: /etc/ssl/ca.pem
    connect_timeout: 5s
    allow_writes: false
    available_to_users: []
  - name: copy
    hosts: [{host: one, port: 5432}, {host: "::1"}]
    target_session_attrs: any
    user: reader
    database: shop
embedding:
  enabled: true
  provider: voyage
  model: voyage-3
  voyage_api_key_file: /etc/pgedge/voyage.key
  voyage_base_url: https://api.voyageai.com/v1/embeddings
  ollama_url: http://localhost:11434
  per_attempt_timeout: 0
llm:
  enabled: true
  provider: anthropic
  model: claude-sonnet-4-5
  anthropic_base_url: https://api.anthropic.com
knowledgebase:
  enabled: false
  database_path: ""
builtins:
  tools: {query_database: true, execute_explain: false}
  resources: {system_info: true}
secret_file: ""
"""


def read(folder: Path, text: str, notes: list[str] | None = None) -> Config:
    path = folder / "postgres-mcp.yaml"
    path.write_text(text)
    path.chmod(0o600)
    return load(str(path), (notes if notes is not None else []).append)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGEDGE_DB_PASSWORD", "PGEDGE_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_each_key_becomes_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGEDGE_DB_PASSWORD", "hush")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hush")
    notes: list[str] = []
    config = read(tmp_path, WHOLE, notes)
    assert config.surfaces == ("postgres",)
    assert (config.http, config.auth) == ("0.0.0.0:8080", True)
    assert config.tls is not None
    assert (config.tls.cert, config.tls.key) == ("/etc/pgedge/server.crt", "/etc/pgedge/server.key")
    assert config.token_files == ("/etc/pgedge/tokens.yaml",)
    lockout = config.lockout
    assert (lockout.failures, lockout.window_s, lockout.lock_s) == (10, 900, 900)
    assert config.allowed_origins == ("https://tools.example",)
    assert config.trusted_proxies == ("10.0.0.0/24",)
    assert {source.name: source.url for source in config.sources} == {
        "shop": "postgresql://reader%40corp:${FILE:/etc/pgedge/shop.password}@db.example:5433/shop"
        "?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem&connect_timeout=5",
        "copy": "postgresql://reader:${ENV:PGEDGE_DB_PASSWORD}@one:5432,[::1]:5432/shop"
        "?target_session_attrs=any",
    }
    assert all(source.access == "read" for source in config.sources)
    assert config.surface == {"postgres": {"source": "shop"}}
    embeddings = config.embeddings
    assert (embeddings.provider, embeddings.model) == ("voyage", "voyage-3")
    assert embeddings.base_url == "https://api.voyageai.com/v1"
    assert embeddings.api_key == "${FILE:/etc/pgedge/voyage.key}"
    assert embeddings.timeout_s == 600
    model = config.section(LanguageSettings).model
    assert model is not None
    assert (model.provider, model.address) == ("anthropic", "https://api.anthropic.com/v1")
    assert (model.api_key, model.max_tokens) == ("${ENV:ANTHROPIC_API_KEY}", 4_096)
    assert notes == []


def test_the_first_versions_file_is_read_as_well(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
database: {connection_string: "postgres://reader@localhost/shop?sslmode=disable"}
anthropic: {api_key: "${ENV:ANTHROPIC_API_KEY}", model: claude-sonnet-4-5}
http: {enabled: false, address: ":8080", tls: {enabled: false, cert_file: ./server.crt}}
""",
    )
    (source,) = config.sources
    assert (source.name, source.url) == (
        "default",
        "postgres://reader@localhost/shop?sslmode=disable",
    )
    assert (config.http, config.tls, config.auth) == (None, None, True)
    assert config.section(LanguageSettings).model is not None


def test_without_authentication_it_listens_on_loopback(tmp_path: Path) -> None:
    config = read(tmp_path, "http: {enabled: true, auth: {enabled: false}}")
    assert (config.http, config.auth) == ("127.0.0.1:8080", False)
    with pytest.raises(TidegateError) as caught:
        read(tmp_path, 'http: {enabled: true, address: "0.0.0.0:80", auth: {enabled: false}}')
    assert caught.value.code is Code.CONFIG_INVALID


REFUSED = {
    "databases: [{name: a, user: u, password: hush}]": "databases[0].password",
    "databases: [{name: a, user: u, connection_string: 'postgres://u:hush@h/d'}]": "literal",
    "databases: [{name: a, user: u, password: [hush]}]": "databases[0].password",
    "databases: [{name: a, connection_string: [hush]}]": "databases[0].connection_string",
    "llm: {enabled: true, provider: openai, openai_api_key: [hush]}": "llm.openai_api_key",
    "http: {client_ip: {source: header, trusted_proxys: [a]}}": "http.client_ip.header",
    "http: {client_ip: {source: socket, trusted_proxys: [a]}}": "http.client_ip.trusted_proxys",
    "databases: [{name: a, allow_writes: true}]": "databases[0].allow_writes",
    "databases: [{name: a, available_to_users: [me]}]": "databases[0].available_to_users",
    "databases: [{name: a, allowed_pl_languages: ['*']}]": "databases[0].allowed_pl_languages",
    "databases: [{name: a, connect_timeout: later}]": "databases[0].connect_timeout",
    "databases: [{name: a, port: many}]": "databases[0].port",
    "databases: [{name: a, colour: red}]": "databases[0].colour",
    "databases: {name: a}": "databases",
    "http: {enabled: true, auth: {user_file: users.yaml}}": "http.auth.user_file",
    "http: {enabled: true, tls: {enabled: true, chain_file: c.pem}}": "http.tls.chain_file",
    "http: {client_ip: {source: header}}": "http.client_ip.header",
    "embedding: {enabled: true, provider: voyage, voyage_api_key: pa-hush}":
        "embedding.voyage_api_key",
    "embedding: {enabled: true, provider: other}": "embedding.provider",
    "llm: {enabled: true, provider: gemini}": "llm.provider",
    "anthropic: {api_key: sk-ant-hush}": "anthropic.api_key",
    "knowledgebase: {enabled: true}": "knowledgebase.enabled",
    "builtins: {tools: {query_database: false}}": "builtins.tools.query_database",
    "builtins: {tools: {query_databse: false}}": "builtins.tools.query_databse",
    "custom_definitions_path: /etc/pgedge/custom.yaml": "custom_definitions_path",
    "databases: []\nsurfaces: [core]": "surfaces",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_kept_is_refused_by_its_name_and_no_secret_is_shown(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(TidegateError) as caught:
        read(tmp_path, text)
    error = caught.value
    if REFUSED[text] == "literal":
        assert error.code in (Code.CONFIG_INVALID, Code.SOURCE_URL)
    else:
        assert error.code is Code.CONFIG_INVALID
        assert f"`{REFUSED[text]}`" in error.message
    assert error.hint or "cannot be" in error.message
    assert "hush" not in f"{error.message} {error.hint}"


def test_what_has_no_effect_here_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    read(
        tmp_path,
        "databases: [{name: a, pool_max_conns: 4, metadata_ttl: 5m}]\ntrace_file: /tmp/t\n",
        notes,
    )
    said = "\n".join(notes)
    for key in ("databases[0].pool_max_conns", "databases[0].metadata_ttl", "trace_file"):
        assert f"`{key}` has no effect" in said


def test_settings_of_ours_are_not_taken_for_pgedges(tmp_path: Path) -> None:
    config = read(tmp_path, "http: 127.0.0.1:0\nsurfaces: [core]\n")
    assert (config.http, config.surfaces) == ("127.0.0.1:0", ("core",))


def test_variables_of_the_environment_stand_for_keys_of_the_file() -> None:
    environment = {
        "PGEDGE_HTTP_ENABLED": "true", "PGEDGE_HTTP_ADDRESS": "127.0.0.1:8081",
        "PGEDGE_TLS_ENABLED": "yes", "PGEDGE_TLS_CERT_FILE": "a.crt",
        "PGEDGE_TLS_KEY_FILE": "a.key",
        "PGEDGE_AUTH_TOKEN_FILE": "tokens.yaml", "PGEDGE_AUTH_RATE_LIMIT_MAX_ATTEMPTS": "3",
        "PGEDGE_EMBEDDING_ENABLED": "1", "PGEDGE_EMBEDDING_PROVIDER": "ollama",
        "PGEDGE_OLLAMA_URL": "http://127.0.0.1:11434", "PGEDGE_LLM_ENABLED": "false",
    }  # fmt: skip
    found = translate(settings_of_environment(environment), environment, lambda _: None)
    config = convert_settings(found)
    assert (config.http, config.auth) == ("127.0.0.1:8081", True)
    assert config.tls is not None and (config.tls.cert, config.tls.key) == ("a.crt", "a.key")
    assert config.token_files == ("tokens.yaml",)
    assert (config.lockout.failures, config.lockout.window_s) == (3, 900)
    assert config.embeddings is not None
    assert config.embeddings.base_url == "http://127.0.0.1:11434"
    assert settings_of_environment({"PGEDGE_DB_HOST": "x", "PGEDGE_HTTP_ADDRESS": ""}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("PGEDGE_HTTP_ENABLED", "maybe"), ("PGEDGE_AUTH_RATE_LIMIT_MAX_ATTEMPTS", "many")],
)
def test_a_variable_of_another_kind_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(TidegateError) as caught:
        settings_of_environment({name: value})
    assert caught.value.code is Code.CONFIG_INVALID
    assert name in caught.value.message


def test_a_user_file_in_a_variable_is_refused_as_in_the_file() -> None:
    said = settings_of_environment({"PGEDGE_AUTH_USER_FILE": "users.yaml"})
    with pytest.raises(TidegateError, match="user_file"):
        translate(said, {}, lambda _: None)
