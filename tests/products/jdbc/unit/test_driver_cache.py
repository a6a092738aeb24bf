"""Drivers fetched from a repository on loopback, and kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.certificates import Authority
from support.maven_repository import DEBIAN, MavenRepository, jar_of, serve_repository
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.driver_jars import known_libraries
from tidegate.products.jdbc.maven.coordinates import Coordinate, parse_coordinates
from tidegate.products.jdbc.maven.driver_cache import RULE, DriverCache
from tidegate.products.jdbc.maven.lock_file import NAME
from tidegate.products.jdbc.settings import DriverSettings

KNOWN = {("org.known", "driver")}
OTHER = parse_coordinates("org.other:driver:1")
DRIVER = parse_coordinates("org.known:driver:1")


@pytest.fixture
def repository() -> Generator[MavenRepository]:
    with serve_repository() as served:
        served.library("org.known:driver:1", needs=["org.known:base:2"])
        served.library("org.known:base:2")
        served.library("org.other:driver:1")
        yield served


def cache_at(directory: Path, repository: MavenRepository, **settings: object) -> DriverCache:
    given = {"repository": repository.url, **settings}
    return DriverCache(directory / "drivers", DriverSettings(**given), KNOWN)  # type: ignore[arg-type]


def names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


def refused(cache: DriverCache, coordinates: tuple[Coordinate, ...] = DRIVER) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        cache.jars(coordinates)
    return caught.value


def test_a_known_driver_is_downloaded_with_what_it_needs(
    repository: MavenRepository, tmp_path: Path
) -> None:
    jars = cache_at(tmp_path, repository).jars(DRIVER)
    assert names(jars) == ["driver-1.jar", "base-2.jar"]
    assert jars[0].read_bytes() == repository.files["org/known/driver/1/driver-1.jar"]
    assert jars[0].stat().st_mode & 0o077 == 0
    assert (tmp_path / "drivers").stat().st_mode & 0o077 == 0


def test_what_is_locked_needs_no_repository(repository: MavenRepository, tmp_path: Path) -> None:
    first = cache_at(tmp_path, repository).jars(DRIVER)
    repository.requests.clear()
    offline = DriverCache(tmp_path / "drivers", DriverSettings(download="none"), KNOWN)
    assert offline.jars(DRIVER) == first
    assert repository.requests == []


def test_code_of_an_unknown_driver_is_not_downloaded_unasked(
    repository: MavenRepository, tmp_path: Path
) -> None:
    error = refused(cache_at(tmp_path, repository), OTHER)
    assert error.code is Code.POLICY_DENIED and error.details == {"rule": RULE}
    assert "tidegate driver fetch org.other:driver:1" in error.hint
    assert "another repository" not in error.message
    assert repository.requests == [] and not (tmp_path / "drivers").exists()


def test_one_unknown_driver_among_known_ones_is_refused(
    repository: MavenRepository, tmp_path: Path
) -> None:
    error = refused(cache_at(tmp_path, repository), DRIVER + OTHER)
    assert error.code is Code.POLICY_DENIED and repository.requests == []


def test_a_known_driver_of_another_repository_is_not_downloaded_unasked(
    repository: MavenRepository, tmp_path: Path
) -> None:
    with serve_repository() as other:
        other.library("org.known:driver:1", jar=jar_of(evil="x"))
        cache = cache_at(tmp_path, repository)
        with pytest.raises(TidegateError) as caught:
            cache.jars(DRIVER, other.url)
        assert caught.value.code is Code.POLICY_DENIED and other.requests == []
        assert "from another repository" in caught.value.message
        assert cache.jars(DRIVER, f"{repository.url}/")  # which is the one of the settings
        cache.remove("org.known:driver:1")
        assert cache_at(tmp_path, repository, download="any").jars(DRIVER, other.url)


def test_a_locked_driver_that_is_gone_comes_from_no_repository_of_a_caller(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    with serve_repository() as other, serve_repository() as third:
        other.files.update(repository.files)
        cache.fetch(OTHER, other.url)
        for jar in cache.jars(OTHER):
            jar.unlink()
        with pytest.raises(TidegateError) as caught:
            cache.jars(OTHER, third.url)
        assert caught.value.details["rule"] == RULE and third.requests == []
        assert names(cache.jars(OTHER, other.url)) == ["driver-1.jar"], "a person fetched it there"


def test_the_settings_can_allow_every_download_or_none(
    repository: MavenRepository, tmp_path: Path
) -> None:
    assert cache_at(tmp_path / "a", repository, download="any").jars(OTHER)
    error = refused(cache_at(tmp_path / "b", repository, download="none"))
    assert error.code is Code.POLICY_DENIED


def test_what_a_person_fetched_may_be_used_by_all(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    cache.fetch(OTHER)
    (jar,) = cache.jars(OTHER)
    jar.unlink()
    assert names(cache.jars(OTHER)) == ["driver-1.jar"]  # its content is pinned


def test_every_known_driver_has_a_coordinate_that_can_be_read() -> None:
    assert ("com.h2database", "h2") in known_libraries()


def test_the_newest_version_is_looked_up_once_and_locked(
    repository: MavenRepository, tmp_path: Path
) -> None:
    path = "org/known/driver/maven-metadata.xml"

    def publish(release: str, *versions: str) -> None:
        listed = "".join(f"<version>{each}</version>" for each in versions)
        text = (
            f"<metadata><versioning>{release}<versions>{listed}</versions></versioning></metadata>"
        )
        repository.add(path, text.encode())

    cache = cache_at(tmp_path, repository)
    newest = parse_coordinates("org.known:driver:RELEASE")
    publish("<release>1</release>", "0.9", "1")
    assert names(cache.jars(newest))[0] == "driver-1.jar"
    repository.library("org.known:driver:2")
    publish("<release>2</release>", "0.9", "1", "2", "3-SNAPSHOT")
    assert names(cache.jars(newest))[0] == "driver-1.jar"
    for jar in cache.jars(newest):
        jar.unlink()
    assert names(cache.jars(newest))[0] == "driver-1.jar"
    publish("", "0.9", "1", "2", "3-SNAPSHOT")
    assert names(cache.jars(parse_coordinates("org.known:driver:LATEST"))) == ["driver-2.jar"]


def test_the_newest_version_is_unknown_without_metadata(
    repository: MavenRepository, tmp_path: Path
) -> None:
    error = refused(cache_at(tmp_path, repository), parse_coordinates("org.known:driver:LATEST"))
    assert error.code is Code.DRIVER_UNRESOLVED and error.hint == "Name the version."


def test_a_missing_jar_is_named_with_what_needs_it(
    repository: MavenRepository, tmp_path: Path
) -> None:
    del repository.files["org/known/base/2/base-2.jar"]
    error = refused(cache_at(tmp_path, repository))
    assert error.code is Code.DRIVER_UNRESOLVED
    assert error.message == (
        "The repository has no org/known/base/2/base-2.jar, which org.known:driver:1 needs."
    )
    assert not (tmp_path / "drivers" / NAME).exists()


@pytest.mark.parametrize("kind", ["sha512", "sha256", "sha1"])
def test_a_file_that_its_checksum_does_not_fit_is_refused(
    repository: MavenRepository, tmp_path: Path, kind: str
) -> None:
    repository.library("org.known:driver:1", checksums=["sha1", "sha256", "sha512"])
    repository.files[f"org/known/driver/1/driver-1.jar.{kind}"] = b"0" * 128
    cache = cache_at(tmp_path, repository)
    if kind != "sha512":  # the strongest counts
        assert cache.jars(DRIVER)
        return
    error = refused(cache)
    assert error.code is Code.DRIVER_UNTRUSTED
    assert "does not have the SHA512 that the repository at 127.0.0.1 gives" in error.message
    assert not list((tmp_path / "drivers").rglob("*.jar"))


def test_a_tampered_jar_is_refused(repository: MavenRepository, tmp_path: Path) -> None:
    repository.files["org/known/base/2/base-2.jar"] = jar_of(evil="x")
    error = refused(cache_at(tmp_path, repository))
    assert error.code is Code.DRIVER_UNTRUSTED and "base-2.jar" in error.message
    assert not (tmp_path / "drivers" / NAME).exists()


@pytest.mark.parametrize("form", ["{0}", "{0}  driver-1.jar\n", "SHA1 (driver-1.jar) = {0}"])
def test_checksum_files_are_read_in_the_forms_that_there_are(
    repository: MavenRepository, tmp_path: Path, form: str
) -> None:
    path = "org/known/driver/1/driver-1.jar.sha1"
    own = repository.files[path].decode().upper()
    repository.files[path] = form.format(own).encode()
    assert cache_at(tmp_path, repository).jars(DRIVER)


def test_files_without_checksums_come_from_this_machine_with_a_warning(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.library("org.known:driver:1", checksums=[])
    cache = cache_at(tmp_path, repository)
    driver = cache.fetch(DRIVER)
    assert driver.warnings == ("the repository gave no checksum for 2 files; what came is pinned",)
    assert len(cache.lock().files["org/known/driver/1/driver-1.jar"].sha256) == 64


def test_changed_content_is_refused_whatever_its_checksum(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    (driver, _) = cache.jars(DRIVER)
    before = driver.read_bytes()
    repository.add("org/known/driver/1/driver-1.jar", jar_of(name="other"))
    driver.unlink()
    error = refused(cache)
    assert error.code is Code.DRIVER_UNTRUSTED
    assert "is not what it was when it was fetched first" in error.message
    assert not driver.exists()
    repository.add("org/known/driver/1/driver-1.jar", before)
    assert cache.jars(DRIVER)[0].read_bytes() == before


def test_a_jar_that_changed_in_the_cache_is_not_used(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    jar = cache.jars(DRIVER)[1]
    jar.write_bytes(jar_of(evil="x"))
    error = refused(cache)
    assert error.code is Code.DRIVER_UNTRUSTED and "its content has changed" in error.message
    (faults,) = cache.verify().values()
    assert [each.path for each in faults] == ["org/known/base/2/base-2.jar"]
    cache.fetch(DRIVER)
    assert cache.verify() == {"org.known:driver:1": []}


def test_two_drivers_share_what_both_need(repository: MavenRepository, tmp_path: Path) -> None:
    cache = cache_at(tmp_path, repository, download="any")
    repository.library("org.other:driver:1", needs=["org.known:base:2"])
    cache.jars(DRIVER)
    repository.requests.clear()
    assert names(cache.jars(OTHER)) == ["driver-1.jar", "base-2.jar"]
    assert not [path for path in repository.paths if "base" in path]
    cache.remove("org.known:driver:1")
    assert cache.find(DRIVER) is None
    assert names(cache.find(OTHER) or []) == ["driver-1.jar", "base-2.jar"]
    cache.remove("org.other:driver:1")
    assert sorted(os.listdir(cache.directory)) == [".lock", NAME]


def test_processes_that_fetch_at_the_same_moment_lock_both_drivers(
    repository: MavenRepository, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(4) as threads:
        for at in range(4):
            cache = cache_at(tmp_path, repository, download="any")
            threads.submit(cache.fetch, OTHER if at % 2 else DRIVER)
    cache = cache_at(tmp_path, repository)
    assert cache.verify() == {"org.known:driver:1": [], "org.other:driver:1": []}
    assert repository.paths.count("org/known/driver/1/driver-1.jar") == 1


def test_the_driver_of_a_database_is_the_one_fetched_last(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    assert cache.find_version("org.known", "driver") is None
    cache.jars(DRIVER)
    assert names(cache.find_version("org.known", "driver") or [])[0] == "driver-1.jar"
    assert cache.find_version("org.known", "base") is None


def test_a_full_disk_leaves_the_cache_as_it_was(
    repository: MavenRepository, tmp_path: Path, full_disk: Path
) -> None:
    cache = DriverCache(
        full_disk / "drivers", DriverSettings(repository=repository.url, download="any"), KNOWN
    )
    cache.jars(OTHER)
    before = (cache.directory / NAME).read_bytes()
    repository.library("org.known:driver:1", jar=jar_of(name="x" * 3_000_000))
    error = refused(cache)
    assert error.code is Code.STATE_FAILED and "No space left on device" in error.message
    assert (cache.directory / NAME).read_bytes() == before
    assert names(cache.jars(OTHER)) == ["driver-1.jar"]
    left = [path.name for path in cache.directory.rglob("*") if path.name.startswith(".")]
    assert left == [".lock"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of 1 MB."""
    import subprocess

    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_lock_file_that_was_cut_is_an_error_that_names_it(
    repository: MavenRepository, tmp_path: Path
) -> None:
    cache = cache_at(tmp_path, repository)
    cache.jars(DRIVER)
    path = cache.directory / NAME
    path.write_bytes(path.read_bytes()[:100])
    error = refused(cache)
    assert error.code is Code.DRIVER_UNTRUSTED and str(path) in error.message
    assert str(tmp_path) not in error.without_secrets().message


@pytest.mark.parametrize("path", ["../../etc/passwd", "a/b/1/x.jar", "/a/b/1/b-1.jar", "a/../b"])
def test_a_lock_file_with_paths_that_lead_elsewhere_is_refused(
    repository: MavenRepository, tmp_path: Path, path: str
) -> None:
    cache = cache_at(tmp_path, repository)
    cache.jars(DRIVER)
    lock = json.loads((cache.directory / NAME).read_bytes())
    lock["files"][path] = {"sha256": "0" * 64, "size": 1}
    (cache.directory / NAME).write_text(json.dumps(lock))
    assert refused(cache).code is Code.DRIVER_UNTRUSTED


def test_the_login_of_the_settings_is_sent_and_never_shown(
    repository: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.login = ("reader", "s3cret-words")
    monkeypatch.setenv("REPOSITORY_PASSWORD", "s3cret-words")
    error = refused(cache_at(tmp_path, repository))
    assert error.code is Code.DRIVER_REPOSITORY and "HTTP status 401" in error.message
    assert "drivers.password" in error.hint
    cache = cache_at(tmp_path, repository, user="reader", password="${ENV:REPOSITORY_PASSWORD}")
    cache.jars(DRIVER)
    written = "".join(
        path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()
    )
    assert "s3cret" not in written
    monkeypatch.setenv("REPOSITORY_PASSWORD", "wrong-words")
    shutil.rmtree(cache.directory)
    error = refused(cache)
    assert "wrong-words" not in f"{error.message}{error.hint}{error.details}"


def test_a_password_is_not_written_into_the_settings() -> None:
    with pytest.raises(TidegateError, match="holds the password itself"):
        DriverSettings(repository="https://maven.example", user="x", password="open")


def test_a_certificate_of_the_settings_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    certificate = authority.sign("repository", "127.0.0.1")
    with serve_repository(certificate=certificate) as repository:
        repository.library("org.known:driver:1")
        error = refused(cache_at(tmp_path, repository))
        assert error.code is Code.DRIVER_REPOSITORY and "not trusted" in error.message
        assert cache_at(tmp_path, repository, ca_file=str(authority.file)).jars(DRIVER)


def test_debians_repository_serves_its_drivers(tmp_path: Path) -> None:
    if not (DEBIAN / "org/apache/derby/derbynet").is_dir():
        pytest.skip("needs Debian's drivers (the package libderby-java)")
    with serve_repository(DEBIAN) as repository:
        cache = cache_at(tmp_path, repository, download="any")
        derby = cache.fetch(parse_coordinates("org.apache.derby:derbynet:10.14.2.0"))
        assert [each.coordinate for each in derby.jars] == [
            "org.apache.derby:derbynet:10.14.2.0",
            "org.apache.derby:derby:debian",
        ]
        assert derby.warnings
        (postgresql,) = (DEBIAN / "org/postgresql/postgresql").glob("4*")
        driver = cache.fetch(parse_coordinates(f"org.postgresql:postgresql:{postgresql.name}"))
        assert driver.jars[0].path.endswith(f"postgresql-{postgresql.name}.jar")
        # A relocation of Debian's: the group of the driver's first years.
        moved = cache.fetch(parse_coordinates("postgresql:postgresql:debian"))
        assert moved.jars[0].coordinate == "org.postgresql:postgresql:debian"
        assert all(not faults for faults in cache.verify().values())
