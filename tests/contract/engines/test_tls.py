"""TLS as the source's URL wants it, against real servers with certificates of our own making."""

import os
import shutil
from contextlib import asynccontextmanager

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
import support.ssh_server as ssh_server
from support.certificates import Authority
from support.engine_cases import CASES
from support.eventually import until
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source

PASSWORD = postgres_server.PASSWORD

needs_postgres = pytest.mark.skipif(
    "debian" not in postgres_server.available(), reason="needs postgresql, built with TLS"
)
needs_mysql = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
needs_ssh = pytest.mark.skipif(not ssh_server.available(), reason="needs openssh-server")


@pytest.fixture(autouse=True)
def passwords(monkeypatch, tmp_path):
    monkeypatch.setenv("PGTEST_PASSWORD", PASSWORD)
    monkeypatch.setenv("MYTEST_PASSWORD", mysql_server.PASSWORD)
    monkeypatch.setenv("HOME", str(tmp_path))  # libpq looks there for authorities


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(files):
    return Authority(files, "authority")


@pytest.fixture(scope="module")
def stranger(files):
    return Authority(files, "stranger")


@pytest.fixture(scope="module")
def postgres(authority):
    """Its certificate names `localhost` and no address; `certified` logs in with one alone."""
    server = postgres_server.Server(postgres_server.available()["debian"])
    data = server.directory / "data"
    certificate, key = authority.sign("server", "localhost")
    for path, name in ((certificate, "s.crt"), (key, "s.key"), (authority.file, "ca.crt")):
        shutil.copy(path, data / name)
        (data / name).chmod(0o600)
        if os.getuid() == 0:
            os.chown(data / name, postgres_server.NOBODY, postgres_server.NOBODY)
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(
            "ssl = on\nssl_cert_file = 's.crt'\nssl_key_file = 's.key'\nssl_ca_file = 'ca.crt'\n"
        )
    rules = data / "pg_hba.conf"
    rules.write_text("hostssl all certified 127.0.0.1/32 cert\n" + rules.read_text())
    server.ask("CREATE ROLE certified LOGIN; CREATE ROLE other LOGIN")
    server.restart()
    yield server
    server.close()


@pytest.fixture(scope="module")
def mysql():
    """Its certificate signs itself and names `127.0.0.1`."""
    server = mysql_server.Server(tls=True)
    server.script(f"CREATE USER certified@'%' IDENTIFIED BY '{mysql_server.PASSWORD}' REQUIRE X509")
    yield server
    server.close()


@pytest.fixture(scope="module")
def sshd():
    server = ssh_server.Server()
    yield server
    server.close()


async def opened(url):
    return await open_engine(Source("s", "s", url, *engine_of(url)))


async def refused(url):
    with pytest.raises(TidegateError) as caught:
        engine = await opened(url)
        await engine.close()
    error = caught.value
    assert error.code in (Code.SOURCE_UNREACHABLE, Code.SOURCE_URL)
    reported = error.message + error.hint
    assert PASSWORD not in reported
    assert "/" not in error.message
    return error


def line_of(server):
    """Whether our line to PostgreSQL is encrypted, and by whose certificate."""
    (found,) = server.ask(
        "SELECT ssl, client_dn FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
        " WHERE application_name = 'tidegate'"
    )
    return found


@asynccontextmanager
async def connected(server, url):
    """An engine that is open within; then its sessions at the server have ended, too."""
    engine = await opened(url)
    try:
        yield
    finally:
        await engine.close()
        await until(
            lambda: (
                not server.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'tidegate'")
            ),
            "the server's sessions to end",
        )


def postgres_url(server, host, options, user="postgres:${ENV:PGTEST_PASSWORD}"):
    return f"postgresql://{user}@{host}:{server.port}/postgres?{options}"


@needs_postgres
@pytest.mark.parametrize(
    ("host", "options", "encrypted"),
    [
        ("localhost", "sslmode=disable", False),
        ("localhost", "", True),
        ("127.0.0.1", "sslmode=require", True),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={ca}", True),
        ("localhost", "sslmode=verify-full&sslrootcert={ca}", True),
    ],
)
async def test_postgres_is_encrypted_as_the_url_says(postgres, authority, host, options, encrypted):
    async with connected(postgres, postgres_url(postgres, host, options.format(ca=authority.file))):
        assert line_of(postgres) == (encrypted, None)


@needs_postgres
@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("localhost", "sslmode=verify-ca&sslrootcert={other}"),
        ("localhost", "sslmode=verify-full&sslrootcert={other}"),
        ("localhost", "sslmode=require&sslrootcert={other}"),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={ca}"),
        ("localhost", "sslmode=verify-full&sslrootcert=/no/where.pem"),
        ("localhost", "sslmode=verify-full"),
    ],
)
async def test_postgres_with_the_wrong_authority_or_name_is_refused(
    postgres, authority, stranger, host, options
):
    options = options.format(ca=authority.file, other=stranger.file)
    error = await refused(postgres_url(postgres, host, options))
    assert "sslmode" in error.hint
    assert postgres.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'tidegate'") == []


async def test_postgres_without_tls_is_refused_where_tls_is_required():
    server = postgres_server.shared("wheel")
    assert server.ask("SHOW ssl") == [("off",)]
    error = await refused(server.tcp_url() + "?sslmode=require")
    assert "sslmode" in error.hint


@needs_postgres
async def test_postgres_lets_in_who_has_a_certificate(postgres, authority, stranger):
    certificate, key = authority.sign("certified")
    ca = f"sslmode=verify-full&sslrootcert={authority.file}"
    own = f"{ca}&sslcert={certificate}&sslkey={key}"
    async with connected(postgres, postgres_url(postgres, "localhost", own, "certified")):
        assert line_of(postgres) == (True, "/CN=certified")
    await refused(postgres_url(postgres, "localhost", ca, "certified"))
    await refused(postgres_url(postgres, "localhost", own, "other"))
    certificate, key = stranger.sign("impostor")
    forged = f"{ca}&sslcert={certificate}&sslkey={key}"
    await refused(postgres_url(postgres, "localhost", forged, "certified"))


@needs_postgres
@needs_ssh
async def test_postgres_behind_a_tunnel_must_still_have_its_own_name(postgres, authority, sshd):
    verified = f"sslmode=verify-full&sslrootcert={authority.file}&{sshd.options()}"
    async with connected(postgres, postgres_url(postgres, "localhost", verified)):
        assert line_of(postgres) == (True, None)
    error = await refused(postgres_url(postgres, "127.0.0.1", verified))
    assert "sslmode" in error.hint


def mysql_url(server, host, options, user="word"):
    return (
        f"mysql://{user}:${{ENV:MYTEST_PASSWORD}}@{host}:{server.port}/information_schema?{options}"
    )


@needs_mysql
@pytest.mark.parametrize(
    ("host", "options", "works"),
    [
        ("127.0.0.1", "tls=verify&tls_ca={ca}", True),
        ("localhost", "tls=require", True),
        ("localhost", "tls=verify&tls_ca={ca}", False),
        ("127.0.0.1", "tls=verify&tls_ca={other}", False),
        ("127.0.0.1", "tls_ca={other}", False),
        ("127.0.0.1", "tls=verify", False),
    ],
)
async def test_mysql_with_the_wrong_authority_or_name_is_refused(
    mysql, stranger, host, options, works
):
    options = options.format(ca=mysql.directory / "cert.pem", other=stranger.file)
    if works:
        engine = await opened(mysql_url(mysql, host, options))
        await engine.close()
    else:
        await refused(mysql_url(mysql, host, options))


@needs_mysql
async def test_mysql_lets_in_who_has_a_certificate(mysql, files):
    kept = (mysql.directory / "cert.pem", mysql.directory / "key.pem")
    certificate, key = Authority(files, "kept", kept).sign("holder")
    ca = f"tls_ca={kept[0]}"
    own = f"{ca}&tls_cert={certificate}&tls_key={key}"
    engine = await opened(mysql_url(mysql, "127.0.0.1", own, "certified"))
    await engine.close()
    await refused(mysql_url(mysql, "127.0.0.1", ca, "certified"))


@needs_mysql
@needs_ssh
async def test_mysql_behind_a_tunnel_must_still_have_its_own_name(mysql, sshd):
    verified = f"tls=verify&tls_ca={mysql.directory}/cert.pem&{sshd.options()}"
    engine = await opened(mysql_url(mysql, "127.0.0.1", verified))
    await engine.close()
    await refused(mysql_url(mysql, "localhost", verified))


@needs_postgres
async def test_large_values_come_whole_from_postgres_by_an_encrypted_line(postgres, tmp_path):
    case = CASES["postgres"].prepare(tmp_path)
    url = postgres_url(postgres, "localhost", "sslmode=require")
    case.source = Source("s", "s", url, "postgres", "postgres")
    async with case.opened() as engine:
        text = "SELECT repeat(chr(65 + i), i * 1700001), 'behind' FROM generate_series(1, 9) AS i"
        rows = await case.ask(engine, text)
        assert [(len(value), value[-1], word) for value, word in rows] == [
            (i * 1_700_001, chr(65 + i), "behind") for i in range(1, 10)
        ]
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, "SELECT repeat('x', 150000000)")
        assert caught.value.code is Code.LIMIT_BYTES
        assert await case.ask(engine, "SELECT 1") == [(1,)]
