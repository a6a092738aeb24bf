"""Repositories and bundles that were made to harm: each is refused by name, and nothing is left."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Generator
from pathlib import Path

import pytest

from support.certificates import Authority
from support.maven_repository import MavenRepository, jar_of, pom_of, serve_repository
from tidegate import file_fetcher as downloads
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven import repository as repository_module
from tidegate.products.jdbc.maven.bundle import import_bundle, write_bundle
from tidegate.products.jdbc.maven.coordinates import parse_coordinates
from tidegate.products.jdbc.maven.driver_cache import DriverCache
from tidegate.products.jdbc.maven.lock_file import NAME
from tidegate.products.jdbc.settings import DriverSettings

DRIVER = parse_coordinates("g:driver:1")
JAR = "g/driver/1/driver-1.jar"
POM = "g/driver/1/driver-1.pom"


@pytest.fixture
def served() -> Generator[MavenRepository]:
    with serve_repository() as repository:
        repository.library("g:driver:1")
        yield repository


def cache_of(tmp_path: Path, url: str, **settings: object) -> DriverCache:
    given = DriverSettings(repository=url, download="any", **settings)  # type: ignore[arg-type]
    return DriverCache(tmp_path / "drivers", given, ())


def refused(cache: DriverCache) -> TidegateError:
    """The error of a fetch, after a look that it left nothing."""
    with pytest.raises(TidegateError) as caught:
        cache.fetch(DRIVER)
    assert not (cache.directory / NAME).exists()
    assert not list(cache.directory.rglob("*.jar"))
    assert not [path for path in cache.directory.rglob(".*") if path.name != ".lock"]
    assert cache.find(DRIVER) is None
    return caught.value


def archive(*names: str, size: int = 1) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(zipfile.ZipInfo(name), b"\0" * size)
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<!DOCTYPE html><html>Sign in</html>", "is a web page and not a jar"),
        (b"\n<html><body>404</body></html>", "is a web page and not a jar"),
        (b"", "is no archive and not a jar"),
        (b"#!/bin/sh\nrm -rf /\n", "is no archive and not a jar"),
        (jar_of(a="x")[:-30], "is damaged"),
        (archive("../../x.class"), "leads out of the archive"),
        (archive("/etc/x"), "leads out of the archive"),
        (archive("a\\..\\..\\x"), "leads out of the archive"),
        (archive("c:/x"), "leads out of the archive"),
    ],
)
def test_what_is_no_jar_is_refused(
    served: MavenRepository, tmp_path: Path, content: bytes, reason: str
) -> None:
    served.add(JAR, content)
    error = refused(cache_of(tmp_path, served.url))
    assert error.code is Code.DRIVER_UNTRUSTED and reason in error.message
    assert JAR in error.message


def test_an_archive_that_unpacks_to_far_too_much_is_refused(
    served: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.products.jdbc.maven import jar_checks

    monkeypatch.setattr(jar_checks, "MOST_UNPACKED_BYTES", 1_000_000)
    served.add(JAR, archive("a", "b", size=600_000))
    assert "unpacks to more than" in refused(cache_of(tmp_path, served.url)).message


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    served: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_module, "MOST_JAR_BYTES", 100)
    error = refused(cache_of(tmp_path, served.url))
    assert error.code is Code.DRIVER_REPOSITORY and "sent more than 100 bytes" in error.message


def test_a_file_that_ends_early_is_refused(served: MavenRepository, tmp_path: Path) -> None:
    served.cut[JAR] = 50
    error = refused(cache_of(tmp_path, served.url))
    assert error.code is Code.DRIVER_REPOSITORY and "after 50 of" in error.message


@pytest.mark.parametrize(
    "pom",
    [
        pom_of("g:driver:1", needs=["../../../etc:passwd:1"]),
        pom_of("g:driver:1", needs=["g:../../../../tmp/x:1"]),
        pom_of("g:driver:1", needs=["g:b:../../../1"]),
        pom_of("g:driver:1", needs=["g:b:1%2f..%2f.."]),
        pom_of("g:driver:1", "<properties><v>../../x</v></properties>", ["g:b:${v}"]),
        b"<!DOCTYPE p [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><project><version>&x;</version>"
        b"</project>",
        b"<project>" * 100 + b"</project>" * 100,
    ],
)
def test_poms_that_lead_elsewhere_are_refused(
    served: MavenRepository, tmp_path: Path, pom: bytes
) -> None:
    served.add(POM, pom)
    error = refused(cache_of(tmp_path, served.url))
    assert error.code is Code.DRIVER_UNRESOLVED
    assert all(path.startswith("g/driver/") for path in served.paths)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drivers"]


def test_a_version_in_the_metadata_that_leads_elsewhere_is_refused(
    served: MavenRepository, tmp_path: Path
) -> None:
    text = "<metadata><versioning><release>../../x</release></versioning></metadata>"
    served.add("g/driver/maven-metadata.xml", text.encode())
    cache = cache_of(tmp_path, served.url)
    with pytest.raises(TidegateError, match="is not a coordinate"):
        cache.fetch(parse_coordinates("g:driver:RELEASE"))


@pytest.mark.parametrize(
    "url",
    [
        *("http://maven.example/repository", "ftp://127.0.0.1/x", "file:///tmp", "maven.example"),
        *("https://user:word@maven.example/x", "https://maven.example/x?y=z", "", "https://"),
        *("http://127.0.0.1.example/x", "http://127.0.0.1@maven.example/x"),
    ],
)
def test_only_https_and_this_machine_are_repositories(tmp_path: Path, url: str) -> None:
    cache = DriverCache(tmp_path / "drivers", DriverSettings(download="any"), ())
    with pytest.raises(TidegateError) as caught:
        cache.fetch(DRIVER, url or "x")
    assert caught.value.code is Code.CONFIG_INVALID
    assert "word" not in f"{caught.value.message}{caught.value.hint}"
    assert not list(tmp_path.rglob("*.jar"))


def test_a_redirect_on_this_machine_does_not_lead_away(
    served: MavenRepository, tmp_path: Path
) -> None:
    for place in ("http://maven.example/x.jar", "ftp://127.0.0.1/x", "file:///etc/passwd"):
        served.redirects[JAR] = place
        error = refused(cache_of(tmp_path, served.url))
        assert error.code is Code.DRIVER_REPOSITORY and "redirects" in error.message


def test_redirects_without_end_are_refused(served: MavenRepository, tmp_path: Path) -> None:
    served.redirects[JAR] = f"{served.url}/{JAR}"
    assert "too many times" in refused(cache_of(tmp_path, served.url)).message
    assert served.paths.count(JAR) <= 7


def test_a_login_does_not_follow_a_redirect_to_another_place(
    tmp_path: Path, served: MavenRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "s3cret")
    with serve_repository() as other:
        other.library("g:driver:1")
        served.redirects[JAR] = f"{other.url}/{JAR}"
        cache = cache_of(tmp_path, served.url, user="reader", password="${ENV:WORD}")
        cache.fetch(DRIVER)
        assert any(authorization for _, authorization in served.requests)
        assert other.requests == [(JAR, None)]


def test_https_does_not_redirect_to_http(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    certificate = authority.sign("repository", "127.0.0.1")
    with serve_repository() as plain, serve_repository(certificate=certificate) as secure:
        plain.library("g:driver:1")
        secure.library("g:driver:1")
        secure.redirects[JAR] = f"{plain.url}/{JAR}"
        cache = cache_of(tmp_path, secure.url, ca_file=str(authority.file))
        error = refused(cache)
        assert "redirects to another scheme" in error.message
        assert plain.requests == []


def test_files_without_a_checksum_come_from_no_other_machine(
    tmp_path: Path, served: MavenRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This machine by a name that is not loopback's, as another machine is reached.
    monkeypatch.setattr(downloads, "is_this_machine", lambda host: False)
    served.library("g:driver:1", checksums=[])
    error = refused(cache_of(tmp_path, served.url))
    assert error.code is Code.DRIVER_UNTRUSTED and "gives no checksum" in error.message
    assert "drivers.allow_unchecked" in error.hint
    cache_of(tmp_path, served.url, allow_unchecked=True).fetch(DRIVER)


def test_a_server_that_fails_in_its_own_way_is_an_error_and_not_a_missing_file(
    served: MavenRepository, tmp_path: Path
) -> None:
    for status in (400, 403, 500, 503):
        served.statuses = {f"{JAR}.sha512": status}
        error = refused(cache_of(tmp_path, served.url))
        assert error.code is Code.DRIVER_REPOSITORY and str(status) in error.message


def test_a_repository_that_is_not_there_is_an_error_without_a_login(tmp_path: Path) -> None:
    from support.free_ports import claim_port

    error = refused(cache_of(tmp_path, f"http://127.0.0.1:{claim_port()}/repository"))
    assert error.code is Code.DRIVER_REPOSITORY and "refused" in error.message


# Bundles


@pytest.fixture
def bundle(served: MavenRepository, tmp_path: Path) -> Path:
    cache = cache_of(tmp_path / "from", served.url)
    cache.fetch(DRIVER)
    target = tmp_path / "drivers.zip"
    write_bundle(cache, target)
    return target


def altered(bundle: Path, changes: dict[str, bytes | None]) -> Path:
    """The bundle with other content."""
    target = bundle.with_name("altered.zip")
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(target, "w") as made:
        for name in source.namelist():
            content = changes.get(name, source.read(name))
            if content is not None:
                made.writestr(name, content)
        for name, content in changes.items():
            if name not in source.namelist() and content is not None:
                made.writestr(name, content)
    return target


def test_a_bundle_brings_drivers_to_a_machine_without_a_network(
    bundle: Path, tmp_path: Path
) -> None:
    cache = DriverCache(tmp_path / "to" / "drivers", DriverSettings(download="none"), ())
    import_bundle(cache, bundle)
    assert [path.name for path in cache.jars(DRIVER)] == ["driver-1.jar"]
    import_bundle(cache, bundle)
    assert cache.verify() == {"g:driver:1": []}


def test_the_same_drivers_make_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    cache = DriverCache(tmp_path / "from" / "drivers", DriverSettings(), ())
    again = tmp_path / "again.zip"
    write_bundle(cache, again)
    assert again.read_bytes() == bundle.read_bytes()
    with pytest.raises(TidegateError, match="is there already"):
        write_bundle(cache, again)


@pytest.mark.parametrize(
    "changes",
    [
        {JAR: jar_of(evil="x")},
        {JAR: None},
        {JAR: b"x" * 1_000_000},
        {POM: b"<project/>"},
        {NAME: b"{}x"},
        {NAME: b'{"version": 2}'},
        {
            NAME: b'{"files": {"../../x": {"sha256": "", "size": 1}}}',
            "../../x": b"x",
        },
        {
            NAME: b'{"drivers": {"g:driver:1": {"jars": [{"coordinate": "g:driver:1", "path":'
            b' "/etc/passwd"}], "repository": "", "fetched_at": ""}}}',
        },
    ],
)
def test_a_bundle_that_was_changed_is_refused(
    bundle: Path, tmp_path: Path, changes: dict[str, bytes | None]
) -> None:
    cache = DriverCache(tmp_path / "to" / "drivers", DriverSettings(download="none"), ())
    with pytest.raises(TidegateError) as caught:
        import_bundle(cache, altered(bundle, changes))
    assert caught.value.code is Code.DRIVER_UNTRUSTED
    assert cache.find(DRIVER) is None
    left = [path.name for path in cache.directory.rglob("*") if path.is_file()]
    assert left == [".lock"]
    assert sorted(os.listdir(tmp_path)) == ["altered.zip", "drivers.zip", "from", "to"]


def test_a_bundle_with_other_content_than_the_cache_is_refused(
    bundle: Path, tmp_path: Path, served: MavenRepository
) -> None:
    served.library("g:driver:1", jar=jar_of(other="x"))
    cache = cache_of(tmp_path / "to", served.url)
    (jar,) = cache.jars(DRIVER)
    before = jar.read_bytes()
    with pytest.raises(TidegateError, match="is not the same in the bundle and in the cache"):
        import_bundle(cache, bundle)
    assert jar.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", archive("a")])
def test_what_is_no_bundle_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    cache = DriverCache(tmp_path / "drivers", DriverSettings(), ())
    with pytest.raises(TidegateError) as caught:
        import_bundle(cache, path)
    assert caught.value.code is Code.ARGUMENT_INVALID
    with pytest.raises(TidegateError):
        import_bundle(cache, tmp_path / "missing.zip")


def test_a_bundle_of_a_cache_that_was_changed_is_not_written(
    served: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_of(tmp_path, served.url)
    cache.fetch(DRIVER)
    (cache.directory / JAR).write_bytes(jar_of(evil="x"))
    with pytest.raises(TidegateError, match="is not what was fetched"):
        write_bundle(cache, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
    shutil.rmtree(cache.directory)
    with pytest.raises(TidegateError, match="no driver in the cache"):
        write_bundle(cache, tmp_path / "x.zip")
