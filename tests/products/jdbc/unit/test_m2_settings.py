"""Maven's own settings: which repository is used, with which login, through which proxy."""

from __future__ import annotations

import zipfile
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from support.maven_repository import MavenRepository, serve_repository
from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import Access, Downloader, Login
from tidegate.products.jdbc.maven.coordinates import parse_coordinates
from tidegate.products.jdbc.maven.driver_cache import MAVEN, DriverCache
from tidegate.products.jdbc.maven.m2_settings import read_m2_settings, super_pom_repository
from tidegate.products.jdbc.settings import DriverSettings

DRIVER = parse_coordinates("g:driver:1")
SECRET = "s3cret-words"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Maven and without proxies."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("MAVEN_HOME", "M2_HOME", "http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def served() -> Generator[MavenRepository]:
    with serve_repository() as repository:
        repository.library("g:driver:1")
        yield repository


def write_settings(home: Path, inside: str) -> None:
    (home / ".m2").mkdir(exist_ok=True)
    (home / ".m2" / "settings.xml").write_text(
        f'<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">{inside}</settings>'
    )


def mirror(url: str, of: str = "central") -> str:
    return (
        f"<mirrors><mirror><id>m</id><mirrorOf>{of}</mirrorOf><url>{url}</url></mirror></mirrors>"
    )


SERVER = (
    "<servers><server><id>other</id><username>x</username><password>y</password></server>"
    "<server><id>m</id><username>reader</username><password>${env.WORD}</password></server>"
    "</servers>"
)


def cache(home: Path, **settings: str) -> DriverCache:
    chosen = msgspec.convert({"download": "any", **settings}, DriverSettings)
    return DriverCache(home / "drivers", chosen, ())


def test_without_any_setting_the_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as caught:
        cache(tmp_path).fetch(DRIVER)
    assert caught.value.code is Code.CONFIG_INVALID and "drivers.repository" in caught.value.hint


def test_a_mirror_of_mavens_settings_is_used_with_its_login(
    served: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", SECRET)
    served.login = ("reader", SECRET)
    write_settings(tmp_path, mirror(served.url) + SERVER)
    driver = cache(tmp_path).fetch(DRIVER)
    assert driver.repository == served.url
    monkeypatch.setenv("WORD", "another-word")
    with pytest.raises(TidegateError) as caught:
        DriverCache(tmp_path / "more", DriverSettings("any"), ()).fetch(DRIVER)
    assert "settings.xml" in caught.value.hint
    assert "another-word" not in f"{caught.value.message}{caught.value.hint}"


def test_the_setting_comes_before_mavens(served: MavenRepository, tmp_path: Path) -> None:
    write_settings(tmp_path, mirror("https://mirror.example/") + SERVER)
    assert cache(tmp_path, repository=served.url).fetch(DRIVER).repository == served.url
    assert {authorization for _, authorization in served.requests} == {None}


@pytest.mark.parametrize(
    ("of", "is_for"),
    [
        *(("central", True), ("*", True), ("external:*", True), ("a,central", True)),
        *(("*,!central", False), ("other", False), ("", False), ("!central,*", False)),
    ],
)
def test_only_a_mirror_of_mavens_own_repository_is_used(
    tmp_path: Path, of: str, is_for: bool
) -> None:
    write_settings(tmp_path, mirror("https://mirror.example/", of))
    assert read_m2_settings(tmp_path).mirror == ("https://mirror.example/" if is_for else None)


def test_an_installed_maven_names_its_repository(
    served: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert super_pom_repository() is None
    home = tmp_path / "maven"
    (home / "lib").mkdir(parents=True)
    (home / "bin").mkdir()
    with zipfile.ZipFile(home / "lib" / "maven-model-builder-3.jar", "w") as jar:
        jar.writestr(
            "org/apache/maven/model/pom-4.0.0.xml",
            "<project><repositories><repository><id>s</id><url>https://snapshots.example</url>"
            "<releases><enabled>false</enabled></releases></repository>"
            f"<repository><id>central</id><url>{served.url}</url></repository></repositories>"
            "</project>",
        )
    program = home / "bin" / "mvn"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("MAVEN_HOME", str(home))
    assert super_pom_repository() == served.url
    monkeypatch.delenv("MAVEN_HOME")
    (tmp_path / "mvn").symlink_to(program)
    assert super_pom_repository() == served.url
    assert cache(tmp_path).fetch(DRIVER).repository == served.url


def test_settings_that_cannot_be_read_are_an_error_only_if_they_are_needed(
    served: MavenRepository, tmp_path: Path
) -> None:
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text("<settings>")
    with pytest.raises(TidegateError) as caught:
        cache(tmp_path).fetch(DRIVER)
    assert caught.value.code is Code.CONFIG_INVALID and "settings.xml" in caught.value.message
    assert str(tmp_path) not in caught.value.without_secrets().message
    assert cache(tmp_path, repository=served.url).fetch(DRIVER)


def test_a_password_that_maven_encrypted_is_an_error_that_says_so(tmp_path: Path) -> None:
    write_settings(
        tmp_path,
        mirror("https://mirror.example/")
        + "<servers><server><id>m</id><username>u</username><password>{COQLCE6DU6GtcS5P=}"
        "</password></server></servers>",
    )
    with pytest.raises(TidegateError, match="Maven encrypted"):
        read_m2_settings(tmp_path)


PROXY = (
    "<proxies><proxy><active>false</active><host>off.example</host></proxy><proxy><id>p</id>"
    "<host>127.0.0.1</host><port>{port}</port><username>me@work</username>"
    "<password>${{env.WORD}}</password><nonProxyHosts>localhost|*.direct.example</nonProxyHosts>"
    "</proxy></proxies>"
)


def test_the_proxy_of_mavens_settings_is_used_unless_its_host_is_direct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "p:w")
    write_settings(tmp_path, PROXY.format(port=3128))
    found = read_m2_settings(tmp_path)
    proxy = "http://me%40work:p%3Aw@127.0.0.1:3128"
    assert found.proxies_for("maven.example") == {"http": proxy, "https": proxy}
    assert found.proxies_for("a.direct.example") == {}


def test_a_proxy_gets_the_request_and_its_login_is_not_shown() -> None:
    with serve_repository() as proxy:
        port = proxy.url.partition("127.0.0.1:")[2].partition("/")[0]
        through = {"https": f"http://me:{SECRET}@127.0.0.1:{port}"}
        access = Access(Login("reader", SECRET), through)
        downloader = Downloader("https://maven.example/repository", access, MAVEN)
        with pytest.raises(TidegateError) as caught:
            downloader.get("x", 100)
    # It is no proxy that connects: it answers CONNECT with 501.
    assert "its proxy refused with HTTP status 501" in caught.value.message
    assert SECRET not in f"{caught.value.message}{caught.value.hint}"


def test_this_machine_is_reached_without_a_proxy(
    served: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert cache(tmp_path, repository=served.url).fetch(DRIVER)
