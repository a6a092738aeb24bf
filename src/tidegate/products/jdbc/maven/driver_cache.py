"""The cache of Java drivers: coordinates in, paths of jars out, offline once they are locked.

Downloading a jar is bringing code here that will run. The settings say which coordinates may be
downloaded without a person's consent; what is locked may be used by every source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import (
    Access,
    Downloader,
    Login,
    Origin,
    Stop,
    check_download_url,
    never,
)
from tidegate.products.jdbc.maven.coordinates import Coordinate
from tidegate.products.jdbc.maven.lock_file import (
    LockedDriver,
    LockedLibrary,
    LockFile,
    exclusive,
    paths_of,
    read_lock,
    write_lock,
)
from tidegate.products.jdbc.maven.m2_settings import (
    NO_SETTINGS,
    M2Settings,
    read_m2_settings,
    super_pom_repository,
)
from tidegate.products.jdbc.maven.pom import ModelBuilder, Pom, parse_pom
from tidegate.products.jdbc.maven.repository import Repository, digest_file, unwritable
from tidegate.products.jdbc.maven.resolution import resolve
from tidegate.products.jdbc.settings import DriverSettings
from tidegate.secrets.references import resolve_option

RULE = "drivers.download"
MAVEN = Origin(
    "The Maven repository",
    Code.DRIVER_REPOSITORY,
    "Set `drivers.user` and `drivers.password`, or the server of the mirror in Maven's"
    " settings.xml.",
    "Give the proxy's account in HTTPS_PROXY, or in Maven's settings.xml.",
    "drivers.ca_file",
)

Known = Collection[tuple[str, str]]
"""(group, artifact) of drivers that are known to be drivers."""
Report = Callable[[str], None]


class Fault(NamedTuple):
    """A file of the cache that is not as it was fetched."""

    path: str
    problem: str


class DriverCache:
    """Drivers in one directory. Every method blocks; `stop` of `fetch` may be set elsewhere."""

    def __init__(self, directory: Path, settings: DriverSettings, known: Known) -> None:
        self._directory = directory
        self._settings = settings
        self._known = known

    @property
    def directory(self) -> Path:
        return self._directory

    def lock(self) -> LockFile:
        """What was fetched. Raises: TidegateError DRIVER_UNTRUSTED, STATE_FAILED."""
        return read_lock(self._directory)

    def find(self, coordinates: Sequence[Coordinate]) -> list[Path] | None:
        """The jars of coordinates that were fetched together; None if they were not, or a file is
        gone.

        Raises: TidegateError DRIVER_UNTRUSTED for a jar that is not what was fetched.
        """
        lock = self.lock()
        driver = lock.drivers.get(key_of(coordinates))
        return None if driver is None else self._jars(driver, lock)

    def has(self, coordinates: Sequence[Coordinate]) -> bool:
        """Whether coordinates were fetched together, and their jars are as they were. Raises: as
        `lock`."""
        lock = self.lock()
        driver = lock.drivers.get(key_of(coordinates))
        return driver is not None and not any(self._faults(driver, lock))

    def find_version(self, group: str, artifact: str) -> list[Path] | None:
        """The jars of the version of a library that was fetched last; None if none was. Raises: as
        `find`."""
        lock = self.lock()
        own = {
            asked: driver
            for asked, driver in lock.drivers.items()
            if asked.startswith(f"{group}:{artifact}:") and "," not in asked
        }
        if not own:
            return None
        return self._jars(max(own.values(), key=lambda each: each.fetched_at), lock)

    def _jars(self, driver: LockedDriver, lock: LockFile) -> list[Path] | None:
        for fault in self._faults(driver, lock):
            if fault.problem == MISSING:
                return None
            raise TidegateError(
                Code.DRIVER_UNTRUSTED,
                f"The driver's file {fault.path} is not what was fetched: {fault.problem}.",
                hint="Find out who changed it. `tidegate driver fetch` brings it back as it was.",
            )
        return [self._directory / path for path in paths_of(driver)]

    def may_download(self, coordinates: Sequence[Coordinate], *, elsewhere: bool = False) -> bool:
        """Whether the settings allow to download them without asking a person; `elsewhere` is from
        another repository than that of the settings."""
        if self._settings.download == "known" and not elsewhere:
            return all((each.group, each.artifact) in self._known for each in coordinates)
        return self._settings.download == "any"

    def jars(
        self,
        coordinates: Sequence[Coordinate],
        repository: str | None = None,
        *,
        stop: Stop = never,
        report: Report | None = None,
    ) -> list[Path]:
        """The jars of coordinates, downloaded now if they are not there and the settings allow it.

        Raises: TidegateError POLICY_DENIED by the rule `drivers.download`, and as `fetch`.
        """
        found = self.find(coordinates)
        if found is not None:
            return found
        locked = self.lock().drivers.get(key_of(coordinates))
        elsewhere = self._is_elsewhere(repository)
        known_place = not elsewhere or (locked is not None and repository == locked.repository)
        again = locked is not None and known_place and self._settings.download != "none"
        if not again and not self.may_download(coordinates, elsewhere=elsewhere):
            allowed_here = elsewhere and self.may_download(coordinates)
            raise refused(coordinates, " from another repository" if allowed_here else "")
        driver = self.fetch(coordinates, repository, stop=stop, report=report)
        return [self._directory / path for path in paths_of(driver)]

    def fetch(
        self,
        coordinates: Sequence[Coordinate],
        repository: str | None = None,
        *,
        stop: Stop = never,
        report: Report | None = None,
    ) -> LockedDriver:
        """Download coordinates with all that they need, and lock them. The caller has seen to it
        that this is allowed. A coordinate that is locked already stays what it is.

        `repository` is an address in place of that of the settings; `report` gets a line for each
        library.
        Raises: TidegateError CONFIG_INVALID, DRIVER_UNRESOLVED, DRIVER_REPOSITORY,
        DRIVER_UNTRUSTED, STATE_FAILED, CALL_CANCELLED. Nothing is locked then.
        """
        with exclusive(self._directory):
            lock = self.lock()
            asked = key_of(coordinates)
            there = lock.drivers.get(asked)
            if there is not None and not any(self._faults(there, lock)):
                return there
            url, access = self._place(repository)
            warnings: dict[str, None] = {}
            source = Repository(
                Downloader(url, access, MAVEN, stop),
                self._directory,
                lock.pin,
                lambda text: warnings.setdefault(text),
                allow_unchecked=self._settings.allow_unchecked,
            )
            driver = self._download(coordinates, source, warnings, url, there, report)
            files = [source.fetched[path] for path in (*paths_of(driver), *driver.poms)]
            write_lock(self._directory, lock.with_driver(asked, driver, files))
            return driver

    def _download(
        self,
        coordinates: Sequence[Coordinate],
        source: Repository,
        warnings: dict[str, None],
        url: str,
        there: LockedDriver | None,
        report: Report | None,
    ) -> LockedDriver:
        """Raises: as `fetch`."""

        def load(coordinate: Coordinate) -> Pom | None:
            content = source.pom(coordinate)
            return None if content is None else parse_pom(content, coordinate)

        def warn(text: str) -> None:
            warnings.setdefault(text)

        if there is not None:
            # What is locked is not resolved again: RELEASE means what it meant.
            for path in (*paths_of(there), *there.poms):
                if source.fetch(path) is None:
                    raise _missing(path, ())
            return there
        resolution = resolve(coordinates, ModelBuilder(load, warn), source.newest, warn)
        jars: list[LockedLibrary] = []
        for library in resolution.libraries:
            if not library.has_jar:
                continue
            if report is not None:
                report(str(library.coordinate))
            if source.fetch(library.path) is None:
                raise _missing(library.path, library.needed_by)
            jars.append(LockedLibrary(str(library.coordinate), library.path))
        if not jars:
            raise TidegateError(
                Code.DRIVER_UNRESOLVED,
                f"{key_of(coordinates)} has no jar.",
                hint="Name the library that has the driver.",
            )
        source.report()
        return LockedDriver(
            jars=tuple(jars),
            repository=url,
            fetched_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            left_out=resolution.left_out,
            warnings=tuple(warnings),
            poms=tuple(path for path in source.fetched if path.endswith(".pom")),
        )

    def remove(self, asked: str) -> None:
        """Forget a driver, and remove the files that no other needs. Raises: TidegateError
        ARGUMENT_INVALID if it was not fetched, STATE_FAILED."""
        with exclusive(self._directory):
            before = self.lock()
            if asked not in before.drivers:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is no driver {asked[:200]} in the cache.",
                    hint="`tidegate driver list` shows them.",
                )
            after = before.without_driver(asked)
            write_lock(self._directory, after)
            for path in before.files.keys() - after.files.keys():
                self._delete(self._directory / path)

    def _delete(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
            for parent in path.parents:
                if parent == self._directory or any(parent.iterdir()):
                    return
                parent.rmdir()
        except OSError as error:
            raise unwritable(path, error) from error

    def verify(self) -> dict[str, list[Fault]]:
        """For each driver the files that are not as they were fetched; none is well. Raises: as
        `lock`."""
        lock = self.lock()
        return {
            asked: list(self._faults(driver, lock, poms=True))
            for asked, driver in lock.drivers.items()
        }

    def _faults(
        self, driver: LockedDriver, lock: LockFile, *, poms: bool = False
    ) -> Iterator[Fault]:
        for path in (*paths_of(driver), *(driver.poms if poms else ())):
            try:
                if digest_file(self._directory / path) != lock.files[path].sha256:
                    yield Fault(path, CHANGED)
            except FileNotFoundError:
                yield Fault(path, MISSING)
            except OSError as error:
                yield Fault(path, error.strerror or "it cannot be read")

    def _is_elsewhere(self, repository: str | None) -> bool:
        """Whether a repository is another than that of the settings: from there a known driver
        could be anything."""
        if repository is None:
            return False
        try:
            return repository.rstrip("/") != self.repository().rstrip("/")
        except TidegateError:
            return True

    def repository(self) -> str:
        """The address that downloads come from. Raises: TidegateError CONFIG_INVALID if none is
        set."""
        return self._place(None)[0]

    def _place(self, repository: str | None) -> tuple[str, Access]:
        """The repository to use, and how: what is asked for, else the setting, else a mirror of
        Maven's settings, else what an installed Maven has. Raises: TidegateError CONFIG_INVALID."""
        settings = self._settings
        named = repository or settings.repository
        # A file that cannot be read matters only if it is needed.
        m2 = NO_SETTINGS if named and _has_proxies() else _m2_settings(tolerant=named is not None)
        url = named or m2.mirror or super_pom_repository()
        if url is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                "It is not known where to download drivers from.",
                hint="Set `drivers.repository` to the address of a Maven repository, or give it"
                " with `tidegate driver fetch --repository`.",
            )
        parts = check_download_url(url, url if named is None else "drivers.repository", "Java code")
        login = None
        if url == settings.repository and settings.user is not None:
            password = resolve_option(settings.password or "")
            login = Login(resolve_option(settings.user), password)
        elif named is None:
            login = m2.login
        proxies = None if _has_proxies() else m2.proxies_for(parts.host)
        return url, Access(login, proxies, settings.ca_file)


MISSING = "it is missing"
CHANGED = "its content has changed"


def key_of(coordinates: Sequence[Coordinate]) -> str:
    """What coordinates are called in the lock file."""
    return ",".join(map(str, coordinates))


def refused(coordinates: Sequence[Coordinate], where: str = "") -> TidegateError:
    """The refusal to download what no person and no setting has allowed. `where` is empty, or what
    makes the difference."""
    asked = key_of(coordinates)
    return TidegateError(
        Code.POLICY_DENIED,
        f"The driver {asked} is not in the cache, and its code is not downloaded{where} without"
        " consent.",
        hint=f"Run `tidegate driver fetch {asked}` at a terminal, or set `drivers.download`.",
        details={"rule": RULE},
    )


def _has_proxies() -> bool:
    from urllib.request import getproxies

    return bool(getproxies().keys() & {"http", "https"})


def _m2_settings(*, tolerant: bool) -> M2Settings:
    try:
        return read_m2_settings()
    except TidegateError:
        if tolerant:
            return NO_SETTINGS
        raise


def _missing(path: str, needed_by: tuple[str, ...]) -> TidegateError:
    by = f", which {' > '.join(needed_by)} needs" if needed_by else ""
    return TidegateError(
        Code.DRIVER_UNRESOLVED,
        f"The repository has no {path}{by}.",
        hint="Check the coordinate, or use a repository that has it.",
    )
