"""A database behind an SSH server: a real `sshd` on loopback, the real databases behind it."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
import support.ssh_server as ssh_server
from support.engine_cases import CASES
from support.eventually import PATIENCE_S, until
from support.loop_server import loop_server
from support.memory_engine.engine import MemoryEngine
from tidegate.engines.api import StatementDescription, can_prepare, has_blocks
from tidegate.engines.registry import engine_of
from tidegate.engines.ssh.port_forwarder import PortForwarder
from tidegate.engines.ssh.tunnel import Tunnel, TunnelledEngine
from tidegate.engines.ssh.url import parse_route
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.statements import Statement
from tidegate.model.transactions import TransactionModes
from tidegate.system.descriptors import is_own_connection

pytestmark = pytest.mark.skipif(not ssh_server.available(), reason="needs openssh-server")

SECRETS = {"PGTEST_PASSWORD": postgres_server.PASSWORD, "MYTEST_PASSWORD": mysql_server.PASSWORD}
BEHIND = ("postgres", "mysql")


@pytest.fixture(scope="module")
def sshd():
    server = ssh_server.Server()
    yield server
    server.close()


@pytest.fixture(params=BEHIND)
def case(request, tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return CASES[request.param].prepare(tmp_path)


@pytest.fixture
def short(monkeypatch):
    """A folder for temporary files of the test's own; a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def led(case, options, port=0):
    """The case's source, by TCP and through the SSH server."""
    database = case.url.partition("?")[0].rpartition("/")[2]
    if case.name == "mysql":
        url = mysql_server.shared().tcp_url(database, port, "&" + options)
    else:
        url = postgres_server.shared("wheel").tcp_url(database, port=port) + "?" + options
    case.source = structs.replace(case.source, url=url)
    return case


def children():
    """The processes that this one has started and that still run: number and command line."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread or a process that ends meanwhile
            for number in (task / "children").read_text().split():
                found[int(number)] = Path(f"/proc/{number}/cmdline").read_bytes().decode()
    return found


def ssh_processes():
    return {number: line for number, line in children().items() if "ssh\0" in line}


def doing(case):
    """What the server does of the case's runaway."""
    database = case.url.partition("?")[0].rpartition("/")[2]
    if case.name == "mysql":
        return mysql_server.shared().script(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute')"
            f" AND DB = '{database}' AND INFO = '{case.spelling.runaway}'"
        )
    return postgres_server.shared("wheel").ask(
        "SELECT pid FROM pg_stat_activity WHERE state = 'active'"
        f" AND datname = '{database}' AND query = '{case.spelling.runaway}'"
    )


async def failing(case):
    with pytest.raises(TidegateError) as caught:
        async with case.opened():
            pass
    return caught.value


async def test_a_database_behind_an_ssh_server_is_used_like_any_other(sshd, case):
    spelling = case.spelling
    async with led(case, sshd.options()).opened() as engine:
        assert await case.ask(engine, spelling.count.format(name="items")) == [(10,)]
        catalog = await case.browse(engine, "catalog")
        assert {"items", "parts", "void"} <= {table.name for table in catalog.tables}
        assert len(await case.ask(engine, spelling.rows.format(n=30_000))) == 30_000
        wide = await case.start(engine, spelling.wide_rows.format(n=50_000, width=1000))
        assert len(await wide.fetch(10)) == 10
        await wide.close()
        with pytest.raises(TidegateError) as caught:
            await case.ask(engine, spelling.runaway, limits=Limits(timeout_s=1))
        assert caught.value.code is Code.LIMIT_TIME
        cancellation = Cancellation()
        await until(lambda: not doing(case), "the statement's end in the server")
        work = asyncio.ensure_future(case.ask(engine, spelling.runaway, cancellation=cancellation))
        await until(lambda: doing(case) or work.done(), "the statement in the server")
        cancellation.cancel()
        with pytest.raises(TidegateError) as caught:
            await work
        assert caught.value.code is Code.CALL_CANCELLED
        counts = [case.ask(engine, spelling.count.format(name="parts")) for _ in range(12)]
        assert await asyncio.gather(*counts) == [[(20,)]] * 12


async def test_a_tunnel_that_was_cut_is_opened_again_for_the_next_call(sshd, case):
    async with led(case, sshd.options()).opened() as engine:
        count = case.spelling.count.format(name="items")
        for _ in range(2):
            sshd.cut()
            for attempt in range(3):
                try:
                    answer = await case.ask(engine, count)
                except TidegateError as error:  # the end of the line, or of the tunnel, is not seen
                    assert error.code is Code.SOURCE_UNREACHABLE
                    assert attempt < 2
                else:
                    assert answer == [(10,)]
                    break


async def test_a_statement_whose_tunnel_is_cut_ends_in_a_coded_error_and_ran_once(sshd, case):
    async with led(case, sshd.options()).opened() as engine:
        work = asyncio.ensure_future(case.ask(engine, case.spelling.runaway))
        await until(lambda: doing(case) or work.done(), "the statement in the server")
        sshd.cut()
        with pytest.raises(TidegateError) as caught:
            await work
        assert caught.value.code is Code.SOURCE_UNREACHABLE
        assert await case.ask(engine, case.spelling.count.format(name="items")) == [(10,)]


async def test_a_tunnel_that_stalls_ends_by_the_time_limit(sshd, case):
    async with led(case, sshd.options()).opened() as engine:
        count = case.spelling.count.format(name="items")
        await case.ask(engine, count)
        sshd.freeze()
        try:
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, count, limits=Limits(timeout_s=0.5))
        finally:
            sshd.thaw()
        assert caught.value.code is Code.LIMIT_TIME
        assert await case.ask(engine, count) == [(10,)]


async def test_an_ssh_server_that_went_away_is_reported_until_it_is_back(sshd, case):
    async with led(case, sshd.options()).opened() as engine:
        count = case.spelling.count.format(name="items")
        sshd.stop()
        try:
            for _ in range(3):
                with pytest.raises(TidegateError) as caught:
                    await case.ask(engine, count)
                assert caught.value.code is Code.SOURCE_UNREACHABLE
            assert caught.value.message == "The SSH server cannot be reached."
        finally:
            sshd.start()
        assert await case.ask(engine, count) == [(10,)]


@pytest.mark.parametrize(
    ("key", "hosts", "message"),
    [
        ("stranger", "known_hosts", "The SSH server refuses the login."),
        ("welcome", "strange_hosts", "The SSH server does not show a host key that is known."),
        ("barred", "known_hosts", "The SSH server does not let this account through"),
    ],
)
async def test_a_refusal_is_reported_without_a_secret(sshd, case, short, key, hosts, message):
    error = await failing(led(case, sshd.options(key, hosts)))
    assert error.code is Code.SOURCE_UNREACHABLE
    assert error.message.startswith(message)
    reported = error.message + error.hint + str(error.details)
    assert not any(secret in reported for secret in (*SECRETS.values(), key, str(sshd.port)))
    assert (list(short.iterdir()), ssh_processes()) == ([], {})


async def test_a_host_key_that_is_not_known_is_not_added_and_no_one_logs_in(sshd, case, tmp_path):
    unknown = tmp_path / "known_hosts"
    unknown.touch()
    before = (sshd.directory / "log").read_text().count("Accepted")
    options = sshd.options().replace(f"{sshd.directory}/known_hosts", str(unknown))
    error = await failing(led(case, options))
    assert error.message == "The SSH server does not show a host key that is known."
    assert unknown.read_text() == ""
    assert (sshd.directory / "log").read_text().count("Accepted") == before


async def test_a_server_that_nothing_answers_at_is_reported(sshd, case):
    error = await failing(led(case, sshd.options(port=1)))
    assert error.message == "The SSH server cannot be reached."
    error = await failing(led(case, sshd.options(), port=1))
    assert error.message == "The SSH server cannot reach the database."


async def test_the_route_may_come_from_the_configuration_of_ssh(sshd, case, tmp_path):
    files = sshd.directory
    common = (
        f"HostName 127.0.0.1\nUser {sshd.user}\nIdentityFile {files}/welcome\n"
        f"UserKnownHostsFile {files}/known_hosts\n"
    )
    config = tmp_path / "config"
    config.write_text(
        f"Host jump\n{common}Port {sshd.port}\n"
        f"Host inner\n{common}Port {sshd.port}\nProxyCommand ssh -F {config} -W %h:%p jump\n"
        f"Host lost\n{common}Port 1\nProxyCommand ssh -F {config} -W %h:%p jump\n"
    )
    options = f"ssh={{}}&ssh_config={config}"
    async with led(case, options.format("inner")).opened() as engine:
        assert await case.ask(engine, case.spelling.count.format(name="items")) == [(10,)]
    error = await failing(led(case, options.format("lost")))
    assert error.message == "The SSH server cannot be reached."


async def test_an_ssh_server_that_says_nothing_is_given_up_in_time(sshd, case):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        case = led(case, sshd.options(port=silent.getsockname()[1]))
        url = case.source.url.replace("connect_timeout=5&", "") + "&connect_timeout=1"
        case.source = structs.replace(case.source, url=url)
        error = await failing(case)
    assert error.code is Code.SOURCE_UNREACHABLE
    assert error.message == "The SSH server did not accept the login within 1 s."


async def test_closing_leaves_no_process_and_no_file(sshd, case, short):
    async with led(case, sshd.options()).opened():
        ((number, line),) = ssh_processes().items()
        seen = line + Path(f"/proc/{number}/environ").read_bytes().decode()
        assert "HOME=" in seen
        assert not any(secret in seen for secret in SECRETS.values())
        (folder,) = short.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_ISSOCK((folder / "database").stat().st_mode)
        end = os.pidfd_open(number)
    assert select.select([end], [], [], 0)[0]  # `close` has waited for it
    os.close(end)
    assert (list(short.iterdir()), ssh_processes()) == ([], {})


async def test_without_the_program_the_error_names_what_to_install(sshd, case, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    error = await failing(led(case, sshd.options()))
    assert error.code is Code.ENGINE_MISSING
    assert "openssh-client" in error.hint


async def test_a_key_that_is_not_there_is_named(sshd, case):
    error = await failing(led(case, sshd.options().replace("/welcome", "/lost")))
    assert error.code is Code.SOURCE_URL
    assert "ssh_key" in error.message
    assert str(sshd.directory) not in error.without_secrets().message


_GATE = """
import asyncio, sys
from tidegate.engines.ssh.url import parse_route
from tidegate.engines.ssh.tunnel import Tunnel, TunnelledEngine
async def main():
    tunnel = await Tunnel.open(parse_route(sys.argv[1], 1))
    print(tunnel._process.pid, tunnel._directory, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs setpriv")
def test_ssh_ends_with_a_gate_that_is_killed(sshd):
    url = f"postgresql://127.0.0.1:1/x?{sshd.options()}"
    gate = subprocess.Popen([sys.executable, "-c", _GATE, url], stdout=subprocess.PIPE, text=True)
    with gate:
        assert gate.stdout is not None
        number, folder = gate.stdout.readline().split()
        end = os.pidfd_open(int(number))
        gate.send_signal(signal.SIGKILL)
        assert select.select([end], [], [], PATIENCE_S)[0]
        os.close(end)
    for path in Path(folder).iterdir():
        path.unlink()
    Path(folder).rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be someone else")
async def test_the_near_end_is_for_our_own_user_alone(sshd):
    server = postgres_server.shared("wheel")
    route = parse_route(f"postgresql://u@127.0.0.1:{server.port}/x?{sshd.options()}", 5432)
    assert route is not None
    tunnel = await Tunnel.open(route)
    ask = (  # whether TLS is spoken: the server answers with one byte
        "import socket, sys\nline = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "line.sendall(bytes((0, 0, 0, 8, 4, 210, 22, 47)))\nprint(line.recv(1))"
    )
    try:
        for user, answered in ((0, True), (ssh_server.NOBODY, False)):
            asking = await asyncio.create_subprocess_exec(
                *("/usr/bin/python3", "-c", ask, str(tunnel.port)),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=user,
            )  # fmt: skip
            out, _ = await asking.communicate()
            assert (out.strip() in (b"b'N'", b"b'S'")) is answered
    finally:
        await tunnel.close()


def test_a_connection_that_the_kernel_does_not_know_is_not_ours():
    assert not is_own_connection(1, 2)


async def test_what_was_sent_before_the_line_ended_still_comes_through():
    async def speak(_, writer):
        writer.write(b"x" * 3_000_000)

    async with loop_server(speak) as port:
        relay = PortForwarder(lambda: asyncio.open_connection("127.0.0.1", port))
        await relay.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        assert len(await reader.read()) == 3_000_000
        writer.close()
        await writer.wait_closed()
        await relay.close()


async def test_a_connection_that_is_dropped_before_it_is_carried_is_closed():
    async def dial():
        raise OSError("never")

    relay = PortForwarder(dial)
    await relay.start()
    accepted: list[asyncio.StreamWriter] = []
    accept = relay._accept

    def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        accept(reader, writer)
        for task in relay._carried:
            task.cancel()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    assert accepted[0].is_closing()
    writer.close()
    await writer.wait_closed()
    server.close()
    await relay.close()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("ssh=", "missing"),
        ("ssh_key=/k", "missing"),
        ("ssh=-oProxyCommand=x", "does not name"),
        ("ssh=me:hidden@bastion", "does not name"),
        ("ssh=bastion:70000", "does not name"),
        ("ssh=a%20b", "does not name"),
        ("ssh=bastion&ssh_keys=/k", "ssh_keys"),
        ("ssh=bastion&ssh=other", "twice"),
        ("ssh=bastion&ssh_key=id", "ssh_key"),
        ("ssh=bastion&ssh_key=/a%22b", "ssh_key"),
        ("ssh=bastion&ssh_known_hosts=/a%0Ab", "ssh_known_hosts"),
        ("ssh=bastion&host=/run/postgresql", "one host"),
        ("ssh=bastion&socket=/run/my.sock", "one host"),
        ("ssh=bastion&hostaddr=10.0.0.1", "one host"),
    ],
)
@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_way_that_cannot_be_gone_is_refused_when_the_source_is_named(scheme, options, part):
    with pytest.raises(TidegateError) as caught:
        engine_of(f"{scheme}://u@db/shop?{options}")
    assert caught.value.code is Code.SOURCE_URL
    assert part in caught.value.message
    assert "hidden" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("place", ["", "u@", "u@one,two", "u@db:0", "u@db:70000"])
def test_a_tunnel_leads_to_one_host_and_port(place):
    with pytest.raises(TidegateError) as caught:
        engine_of(f"postgresql://{place}/shop?ssh=bastion")
    assert caught.value.code is Code.SOURCE_URL


def test_the_way_is_read_in_all_its_parts():
    url = (
        "postgresql://u:${FILE:/run/a@b?c}@[fd00::7]:6432/my%20shop?sslmode=verify-full"
        "&ssh=me@[::1]:2222&ssh_key=/etc/a%20key&connect_timeout=3&ssh_config=/c"
    )
    route = parse_route(url, 5432)
    assert route is not None
    assert (route.user, route.server, route.server_port) == ("me", "::1", 2222)
    assert route.files == {"ssh_key": "/etc/a key", "ssh_config": "/c"}
    assert (route.host, route.port, route.connect_s) == ("[fd00::7]", 6432, 3.0)
    assert route.url_at(4321) == (
        "postgresql://u:${FILE:/run/a@b?c}@[fd00::7]:4321/my%20shop?sslmode=verify-full"
        "&connect_timeout=3&hostaddr=127.0.0.1"
    )
    plain = parse_route("mysql://db?ssh=bastion", 3306)
    assert plain is not None
    assert (plain.server, plain.user, plain.port) == ("bastion", None, 3306)
    assert plain.url_at(9) == "mysql://db:9?hostaddr=127.0.0.1"


@pytest.mark.parametrize("url", ["postgresql://ssh@ssh/ssh", "mysql://u@h/d?tls=off", "mysql://"])
def test_a_url_without_the_option_names_no_tunnel(url):
    assert parse_route(url, 1) is None


class Held:
    """A transaction of `TalkingEngine`: its statements run as without one."""

    idle_s = 0.0

    def __init__(self, engine):
        self._engine = engine

    async def run(self, permit, cancellation):
        return await self._engine.run(permit, cancellation)

    async def rollback(self):
        pass


class TalkingEngine(MemoryEngine):
    """The engine of the tests, with what `PreparingEngine` and `TransactionEngine` add."""

    capabilities = structs.replace(
        MemoryEngine.capabilities, prepares=True, multi_statement_transactions=True
    )

    async def prepare(self, permit, cancellation):
        cursor = await self.run(permit, cancellation)
        await cursor.close()
        return StatementDescription(cursor.columns)

    async def begin(self, permit, modes, cancellation):
        return Held(self)


async def test_an_engine_behind_a_tunnel_keeps_what_it_can_do(sshd, tmp_path):
    case = CASES["memory"].prepare(tmp_path)
    permit = case.permit(Query(Statement(case.spelling.one)))
    server = postgres_server.shared("wheel")
    route = parse_route(f"postgresql://u@127.0.0.1:{server.port}/x?{sshd.options()}", 5432)
    for kind, supporting in ((TalkingEngine, True), (MemoryEngine, False)):
        tunnel = await Tunnel.open(route)
        engine = TunnelledEngine(await kind.open(case.source), tunnel)
        try:
            assert (can_prepare(engine), has_blocks(engine)) == (supporting, supporting)
            if supporting:
                described = await engine.prepare(permit, NEVER)
                assert described.columns
                transaction = await engine.begin(permit, TransactionModes(), NEVER)
                cursor = await transaction.run(permit, NEVER)
                assert await cursor.fetch(10)
                await cursor.close()
                await transaction.rollback()
                continue
            for asked in (
                engine.prepare(permit, NEVER),
                engine.begin(permit, TransactionModes(), NEVER),
                engine.read_images(permit, NEVER),
                engine.change_rows(permit, NEVER),
            ):
                with pytest.raises(TidegateError) as caught:
                    await asked
                assert caught.value.code is Code.UNSUPPORTED
        finally:
            await engine.close()
