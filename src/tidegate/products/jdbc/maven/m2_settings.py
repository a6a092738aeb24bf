"""What an installed Maven is set up with: mirrors, logins and proxies, and its own repository.

Follows Maven's "Settings Reference". Only what downloads need is read.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import Login
from tidegate.paths import home_directory
from tidegate.products.jdbc.maven.xml_documents import read_document
from tidegate.xml_tree import Element

_SUPER_POM = "org/apache/maven/model/pom-4.0.0.xml"
_CENTRAL = "central"
"""The id of the repository that every Maven has, which mirrors replace."""


class M2Settings(NamedTuple):
    """`mirror` is the address that replaces Maven's own repository, with its `login`; both None
    if there is no such mirror. `proxies` are by scheme, and hosts that fit a pattern of `direct`
    are reached without them."""

    mirror: str | None = None
    login: Login | None = None
    proxies: Mapping[str, str] = {}
    direct: tuple[str, ...] = ()

    def proxies_for(self, host: str) -> Mapping[str, str]:
        """The proxies for a host, by scheme."""
        fits = any(fnmatchcase(host.lower(), pattern.lower()) for pattern in self.direct)
        return {} if fits else self.proxies


NO_SETTINGS = M2Settings()


def read_m2_settings(home: Path | None = None) -> M2Settings:
    """The user's `.m2/settings.xml`; `NO_SETTINGS` if there is none.

    Raises: TidegateError CONFIG_INVALID if it cannot be read.
    """
    try:
        path = (home or home_directory()) / ".m2" / "settings.xml"
    except TidegateError:  # the account has no home directory
        return NO_SETTINGS
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return NO_SETTINGS
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None
    try:
        root = read_document(content, "Maven's settings.xml")
    except TidegateError as error:
        raise _unusable(path, error.message.partition(": ")[2].removesuffix(".")) from None
    proxies, direct = _proxies(root)
    for mirror in root.all("mirrors", "mirror"):
        if _is_for_central(_filled(mirror.value("mirrorOf"))):
            login = _login(root, _filled(mirror.value("id")), path)
            return M2Settings(_filled(mirror.value("url")), login, proxies, direct)
    return M2Settings(None, None, proxies, direct)


def super_pom_repository() -> str | None:
    """The address of the repository that an installed Maven declares in its super-POM; None if no
    Maven is found, or no repository of it is for releases."""
    for home in _maven_homes():
        for jar in sorted((home / "lib").glob("maven-model-builder*.jar")):
            try:
                with zipfile.ZipFile(jar) as archive:
                    root = read_document(archive.read(_SUPER_POM), "Maven's super-POM")
            except (OSError, KeyError, zipfile.BadZipFile, TidegateError):
                continue
            for repository in root.all("repositories", "repository"):
                if repository.value("releases", "enabled") != "false":
                    return repository.value("url") or None
    return None


def _maven_homes() -> Iterator[Path]:
    for variable in ("MAVEN_HOME", "M2_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    program = shutil.which("mvn")
    if program is not None:
        yield Path(program).resolve().parent.parent


def _is_for_central(pattern: str) -> bool:
    """Whether a mirror's `mirrorOf` covers Maven's own repository, which is elsewhere."""
    found = False
    for part in pattern.split(","):
        part = part.strip()
        if part == f"!{_CENTRAL}":
            return False
        found = found or part in ("*", _CENTRAL, "external:*")
    return found


def _login(root: Element, id: str, path: Path) -> Login | None:
    for server in root.all("servers", "server"):
        if _filled(server.value("id")) == id and server.value("username"):
            password = _filled(server.value("password"))
            if re.fullmatch(r"\{[A-Za-z0-9+/=]+\}", password):
                raise _unusable(path, "has a password that Maven encrypted, which is not decrypted")
            return Login(_filled(server.value("username")), password)
    return None


def _proxies(root: Element) -> tuple[dict[str, str], tuple[str, ...]]:
    """The first proxy that is active, for both schemes, and the hosts that need none."""
    for proxy in root.all("proxies", "proxy"):
        host, port = _filled(proxy.value("host")), _filled(proxy.value("port")) or "8080"
        if proxy.value("active") == "false" or not host or not port.isdecimal():
            continue
        user, password = _filled(proxy.value("username")), _filled(proxy.value("password"))
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
        url = f"http://{login}{host}:{port}"
        direct = tuple(filter(None, _filled(proxy.value("nonProxyHosts")).split("|")))
        return {"http": url, "https": url}, direct
    return {}, ()


def _filled(text: str) -> str:
    """With `${env.NAME}` replaced by the variable, as Maven does."""
    return re.sub(r"\$\{env\.(\w+)\}", lambda found: os.environ.get(found[1], ""), text)


def _unusable(path: Path, reason: str) -> TidegateError:
    return TidegateError(
        Code.CONFIG_INVALID,
        f"Maven's settings {path} cannot be used: it {reason}.",
        hint="Correct the file, or set `drivers.repository`, which is used in its place.",
        details={"path": str(path)},
    )
