"""How a source's URL is read, and what is said of one that cannot be opened."""

import apsw
import pytest

from tidegate.config.installation import add_command
from tidegate.engines import registry
from tidegate.engines.common.url import parse_file_url, scheme_of
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.product import EngineEntry


def source(url):
    return Source("s1", "shop", url, "sqlite", "sqlite")


def refusal(work):
    with pytest.raises(TidegateError) as caught:
        work()
    return caught.value


async def opening(url):
    with pytest.raises(TidegateError) as caught:
        await open_engine(source(url))
    return caught.value


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE items (id)")
    connection.close()
    return path


def test_a_scheme_tells_engine_and_dialect():
    assert engine_of("sqlite:///shop.db") == ("sqlite", "sqlite")
    assert engine_of("memory://") == ("memory", "memory")


def second_word(url):
    return url.split(":")[1]


def test_a_longer_prefix_finds_an_engine_and_the_url_tells_its_dialect(monkeypatch):
    general = EngineEntry(
        *("jdbc", "", "no_module", "JdbcEngine"), dialect_reader=f"{__name__}:second_word"
    )
    monkeypatch.setitem(registry.ENGINES, "jdbc:", general)
    monkeypatch.setitem(registry.ENGINES, "jdbc:duckdb:", EngineEntry("duck", "duckdb", "no", "No"))
    assert engine_of("jdbc:h2:mem:x") == ("jdbc", "h2")
    assert engine_of("JDBC:duckdb:") == ("duck", "duckdb")
    assert registry.find("jdbc:h2:mem:x") is general
    assert "jdbc:" in refusal(lambda: engine_of("gopher://x")).hint


def test_a_drivers_name_in_the_scheme_is_passed_over():
    assert scheme_of("SQLite+pysqlite:///shop.db") == "sqlite"


@pytest.mark.parametrize("url", ["", "shop.db", "/data/shop.db", "://x", "sqlite:/x"])
def test_a_url_without_a_scheme_is_refused(url):
    assert refusal(lambda: engine_of(url)).code is Code.SOURCE_URL


def test_an_unknown_scheme_lists_the_known_ones():
    error = refusal(lambda: engine_of("gopher://x"))
    assert error.code is Code.SOURCE_URL
    shown = [each if each.endswith(":") else f"{each}://" for each in registry.ENGINES]
    assert all(each in error.hint for each in shown)


def test_a_misspelt_scheme_is_corrected():
    assert "`sqlite://`" in refusal(lambda: engine_of("sqllite:///x")).hint


async def test_a_missing_driver_names_the_extra(monkeypatch):
    entry = EngineEntry("duckdb", "duckdb", "no_such_driver", "DuckEngine", "duckdb")
    monkeypatch.setitem(registry.ENGINES, "duckdb", entry)
    error = await opening("duckdb:///x.db")
    assert error.code is Code.ENGINE_MISSING
    assert "no_such_driver" in error.message
    assert error.hint == f"Run: {add_command('duckdb')}"


def test_three_slashes_are_relative_and_four_absolute(shop, monkeypatch):
    monkeypatch.chdir(shop.parent)
    assert parse_file_url("sqlite:///shop.db", ()).path == str(shop)
    assert parse_file_url(f"sqlite:///{shop}", ()).path == str(shop)
    assert str(shop).startswith("/")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_no_file_means_in_memory(url):
    assert parse_file_url(url, ()).path is None


def test_a_name_with_escapes_is_found_written_either_way(tmp_path):
    (tmp_path / "my shop.db").touch()
    (tmp_path / "50%25.db").touch()
    decoded = parse_file_url(f"sqlite:///{tmp_path}/my%20shop.db", ())
    literal = parse_file_url(f"sqlite:///{tmp_path}/50%25.db", ())
    assert (decoded.name, literal.name) == ("my shop", "50%25")


def test_a_host_is_refused_with_the_number_of_slashes():
    error = refusal(lambda: parse_file_url("sqlite://shop.db", ()))
    assert error.code is Code.SOURCE_URL
    assert "three slashes" in error.hint


def test_an_unknown_option_is_refused_with_one_like_it():
    error = refusal(lambda: parse_file_url("sqlite:///?timeot=3", ("timeout", "mode")))
    assert error.code is Code.SOURCE_URL
    assert "`timeout`" in error.hint


def test_an_option_given_twice_is_refused():
    error = refusal(lambda: parse_file_url("sqlite:///?mode=ro&mode=rw", ("mode",)))
    assert error.code is Code.SOURCE_URL


@pytest.mark.parametrize("query", ["timeout=soon", "timeout=-1", "mode=rwc", "immutable=yes"])
async def test_an_option_with_a_wrong_value_is_refused(shop, query):
    assert (await opening(f"sqlite:///{shop}?{query}")).code is Code.SOURCE_URL


async def test_sqlites_own_file_names_are_refused(shop):
    assert (await opening(f"sqlite:///file:{shop}")).code is Code.SOURCE_URL


async def test_a_missing_file_is_named_and_not_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = await opening("sqlite:///nowhere.db")
    assert error.code is Code.SOURCE_UNREACHABLE
    assert str(tmp_path / "nowhere.db") in error.message
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_is_no_database(tmp_path):
    error = await opening(f"sqlite:///{tmp_path}")
    assert error.code is Code.SOURCE_URL
    assert "directory" in error.message


async def test_a_file_of_something_else_is_no_database_and_is_left_alone(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_bytes(b"Dear Sir or Madam, " * 100)
    error = await opening(f"sqlite:///{path}")
    assert error.code is Code.SOURCE_URL
    assert "not a SQLite database" in error.message
    assert "a file that SQLite wrote" in error.hint
    assert path.read_bytes() == b"Dear Sir or Madam, " * 100


async def test_an_empty_file_is_an_empty_database(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    engine = await open_engine(source(f"sqlite:///{path}"))
    assert engine.status.database == "empty"
    await engine.close()


async def test_opening_and_reading_leaves_no_file_behind(shop):
    engine = await open_engine(source(f"sqlite:///{shop}"))
    await engine.schema_version()
    await engine.close()
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


async def test_a_source_on_a_read_only_disk_can_be_declared_read_only(shop):
    engine = await open_engine(source(f"sqlite:///{shop}?immutable=1&mode=ro&timeout=0.5"))
    assert await engine.schema_version()
    await engine.close()
