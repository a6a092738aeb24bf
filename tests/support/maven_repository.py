"""A Maven repository on loopback, with what a test puts there; and Debian's own, served as one."""

from __future__ import annotations

import hashlib
import io
import ssl
import zipfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from support.thread_server import thread_http_server
from tidegate.products.jdbc.maven.coordinates import parse_coordinate

DEBIAN = Path("/usr/share/maven-repo")


def jar_of(**entries: str) -> bytes:
    """A jar with a manifest and these entries (`a__b` is the path a/b)."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
        for name, text in entries.items():
            archive.writestr(name.replace("__", "/"), text)
    return target.getvalue()


def pom_of(coordinate: str, inside: str = "", needs: Iterable[str] = ()) -> bytes:
    """A POM with what else stands in it. `needs` are dependencies: `g:a:v`, and words behind it
    that are `optional`, `type=…`, `scope=…`, `classifier=…` or `without=g:a`."""
    group, artifact, version = coordinate.split(":")
    dependencies = "".join(map(dependency, needs))
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">'
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<dependencies>{dependencies}</dependencies>{inside}</project>"
    ).encode()


def dependency(text: str) -> str:
    """The element of a dependency, as `pom_of` describes it."""
    coordinate, *words = text.split()
    group, artifact, *version = coordinate.split(":", 2)
    parts = [f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"]
    parts += [f"<version>{each}</version>" for each in version]
    for word in words:
        name, _, value = word.partition("=")
        if name == "without":
            out_group, out_artifact = value.split(":")
            value = (
                f"<exclusion><groupId>{out_group}</groupId>"
                f"<artifactId>{out_artifact}</artifactId></exclusion>"
            )
            name = "exclusions"
        parts.append(f"<{name}>{value or 'true'}</{name}>")
    return f"<dependency>{''.join(parts)}</dependency>"


def managed(*dependencies: str) -> str:
    """A `dependencyManagement` of these."""
    inner = "".join(map(dependency, dependencies))
    return f"<dependencyManagement><dependencies>{inner}</dependencies></dependencyManagement>"


class MavenRepository:
    """What a server on loopback has. `requests` are (path, Authorization) in order; `redirects` are
    by path, and so is `statuses`. With a `login` (user, password) others get 401."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.statuses: dict[str, int] = {}
        self.cut: dict[str, int] = {}
        """How many bytes of a file are sent, where not all are."""
        self.login: tuple[str, str] | None = None
        self.requests: list[tuple[str, str | None]] = []
        self.folder: Path | None = None
        self.url = ""

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [path for path, _ in self.requests]

    def add(self, path: str, content: bytes, checksums: Iterable[str] = ("sha1",)) -> None:
        """Put a file there, with these checksums and no others."""
        for kind in ("sha1", "sha256", "sha512"):
            self.files.pop(f"{path}.{kind}", None)
        self.files[path] = content
        for kind in checksums:
            self.files[f"{path}.{kind}"] = hashlib.new(kind, content).hexdigest().encode()

    def library(
        self,
        coordinate: str,
        inside: str = "",
        needs: Iterable[str] = (),
        *,
        jar: bytes | None = None,
        checksums: Iterable[str] = ("sha1",),
    ) -> None:
        """Put a POM and a jar there."""
        found = parse_coordinate(coordinate)
        self.add(found.path("pom"), pom_of(coordinate, inside, needs), checksums)
        content = jar_of(name=coordinate) if jar is None else jar
        self.add(found.path("jar"), content, checksums)


def _handler(repository: MavenRepository) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/").removeprefix("repository/")
            authorization = self.headers.get("Authorization")
            repository.requests.append((path, authorization))
            status, body, location = _answer(repository, path, authorization)
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: repository.cut.get(path, len(body))])

        def log_message(self, format: str, *args: object) -> None:
            return None

    return Handler


def _answer(
    repository: MavenRepository, path: str, authorization: str | None
) -> tuple[int, bytes, str | None]:
    if path in repository.redirects:
        return 302, b"", repository.redirects[path]
    if path in repository.statuses:
        return repository.statuses[path], b"", None
    if repository.login is not None:
        from base64 import b64encode

        wanted = b64encode(":".join(repository.login).encode()).decode()
        if authorization != f"Basic {wanted}":
            return 401, b"who are you?", None
    if path in repository.files:
        return 200, repository.files[path], None
    if repository.folder is not None and (repository.folder / path).is_file():
        return 200, (repository.folder / path).read_bytes(), None
    return 404, b"not found", None


@contextmanager
def serve_repository(
    folder: Path | None = None, certificate: tuple[Path, Path] | None = None
) -> Generator[MavenRepository]:
    """A repository on loopback, empty or with the files of a folder; over TLS with a certificate
    and its key."""
    repository = MavenRepository()
    repository.folder = folder
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    with thread_http_server(_handler(repository), context) as port:
        scheme = "http" if context is None else "https"
        repository.url = f"{scheme}://127.0.0.1:{port}/repository"
        yield repository
