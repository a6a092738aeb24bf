"""Documents come from a registry over HTTP or from a folder, and are verified when they are pulled
and when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from products.cloud.support.cloud_registry import PROVIDER, STOCK
from products.cloud.support.signed_documents import archive, certificate, sign, signed
from support.thread_server import ThreadHttpServer
from support.thread_server import running as running_server
from tidegate.cli.main import main
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.registry import Available, Registry, verifier_of
from tidegate.products.cloud.documents.registry_folder import (
    RegistryFolder,
    is_version,
    latest_stable,
    order_of,
)
from tidegate.products.cloud.settings import CloudSettings

LIST = b"""
providers:
  shop: {versions: [v1.0.0, v0.9.10, v2.0.0-rc1, v0.10.0, '../evil']}
  google: {versions: [v1.0.0]}
  previews: {versions: [v1.0.0-alpha]}
  ../up: {versions: [v1.0.0]}
"""
DOCUMENTS = {"provider": PROVIDER.replace("v00.00.00000", "v1.0.0").encode(),
             "services__stock": STOCK.encode()}  # fmt: skip


class Server(ThreadHttpServer):
    """Serves `files` by path, and keeps the paths that were asked for."""

    files: dict[str, bytes]
    asked: list[str]

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.files, self.asked = {}, []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/providers"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append(self.path)
        content = server.files.get(self.path)
        if content is not None and content.startswith(b"-> "):
            self.send_response(302)
            self.send_header("Location", content[3:].decode())
            content = b""
        else:
            self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    with running_server(server):
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.files = {
        "/providers/dist/providers.yaml": LIST,
        "/providers/dist/shop/v1.0.0.tgz": archive(signed(**DOCUMENTS)).getvalue(),
    }
    running.asked = []
    return running


@pytest.fixture
def pem(tmp_path: Path) -> str:
    path = tmp_path / "certificate.pem"
    path.write_bytes(certificate())
    return str(path)


def settings(server: Server, pem: str | None, verify: bool = True) -> CloudSettings:
    return CloudSettings(registry=server.address, certificate=pem, verify=verify)


def test_a_list_names_the_latest_stable_version_and_all_of_one_provider(
    server: Server, pem: str
) -> None:
    registry = Registry(settings(server, pem))
    assert registry.available() == [Available("google", "v1.0.0"), Available("shop", "v1.0.0")]
    assert [each.version for each in registry.available("shop")] == [
        "v0.9.10", "v0.10.0", "v1.0.0", "v2.0.0-rc1",
    ]  # fmt: skip
    assert registry.available("nothing") == []


def test_the_latest_documents_are_pulled_verified_and_read(
    server: Server, pem: str, tmp_path: Path
) -> None:
    chosen = settings(server, pem)
    pulled = Registry(chosen).pull("shop", "", tmp_path / "src")
    assert pulled == Available("shop", "v1.0.0")
    folder = RegistryFolder(tmp_path, verifier_of(chosen))
    provider = folder.provider("shop/v1.0.0/provider.yaml")
    document = folder.service(provider, provider.services["stock"])
    assert document is not None and document.resource("items") is not None


def test_what_was_changed_after_it_was_pulled_is_not_read(
    server: Server, pem: str, tmp_path: Path
) -> None:
    chosen = settings(server, pem)
    Registry(chosen).pull("shop", "v1.0.0", tmp_path / "src")
    folder = RegistryFolder(tmp_path, verifier_of(chosen))
    path = tmp_path / "src" / "shop" / "v1.0.0" / "provider.yaml"
    path.write_bytes(path.read_bytes() + b"\n# changed")
    with pytest.raises(TidegateError, match="not that of this content") as refusal:
        folder.provider("shop/v1.0.0/provider.yaml")
    assert refusal.value.code is Code.DOCUMENT_UNTRUSTED
    path.with_name("provider.yaml.sig").unlink()
    with pytest.raises(TidegateError, match="no signature"):
        folder.provider("shop/v1.0.0/provider.yaml")
    assert RegistryFolder(tmp_path).provider("shop/v1.0.0/provider.yaml").name == "shop"


def test_an_archive_with_a_wrong_signature_leaves_nothing(
    server: Server, pem: str, tmp_path: Path
) -> None:
    files = signed(**DOCUMENTS)
    files["v1.0.0/provider.yaml.sig"] = sign(b"other")
    server.files["/providers/dist/shop/v1.0.0.tgz"] = archive(files).getvalue()
    with pytest.raises(TidegateError) as refusal:
        Registry(settings(server, pem)).pull("shop", "v1.0.0", tmp_path / "src")
    assert refusal.value.code is Code.DOCUMENT_UNTRUSTED
    assert not (tmp_path / "src").exists()
    assert Registry(settings(server, None, verify=False)).pull("shop", "v1.0.0", tmp_path / "src")


def test_google_has_the_folder_googleapis_com(server: Server, pem: str, tmp_path: Path) -> None:
    content = archive(signed(**DOCUMENTS)).getvalue()
    server.files["/providers/dist/googleapis.com/v1.0.0.tgz"] = content
    Registry(settings(server, pem)).pull("google", "", tmp_path / "src")
    assert (tmp_path / "src" / "googleapis.com" / "v1.0.0" / "provider.yaml").exists()


@pytest.mark.parametrize(
    ("provider", "version", "problem"),
    [
        ("../up", "", "not the name"),
        ("shop", "../../etc", "not the name"),
        ("shop", "v9.9.9", "has no dist/shop/v9"),
        ("nothing", "", "does not list it"),
        ("previews", "", "no stable version"),
    ],
)
def test_a_provider_or_version_that_is_not_there_is_named(
    server: Server, pem: str, tmp_path: Path, provider: str, version: str, problem: str
) -> None:
    with pytest.raises(TidegateError, match=problem) as refusal:
        Registry(settings(server, pem)).pull(provider, version, tmp_path / "src")
    assert refusal.value.code is Code.ARGUMENT_INVALID
    assert all(".." not in path for path in server.asked)


def test_a_registry_that_fails_is_named_with_its_address(
    server: Server, pem: str, tmp_path: Path
) -> None:
    registry = Registry(settings(server, pem))
    server.files["/providers/dist/providers.yaml"] = b"-> http://203.0.113.9/providers.yaml"
    with pytest.raises(TidegateError, match=r"127\.0\.0\.1") as refusal:
        registry.available()
    assert refusal.value.code is Code.DOCUMENT_REGISTRY
    server.files["/providers/dist/providers.yaml"] = b"providers: ["
    with pytest.raises(TidegateError) as refusal:
        registry.available()
    assert refusal.value.code is Code.DOCUMENT_INVALID


def test_a_registry_in_a_folder_pulls_and_has_no_list(pem: str, tmp_path: Path) -> None:
    dist = tmp_path / "registry of ours" / "dist" / "shop"
    dist.mkdir(parents=True)
    (dist / "v1.0.0.tgz").write_bytes(archive(signed(**DOCUMENTS)).getvalue())
    address = dist.parent.parent.as_uri()
    registry = Registry(CloudSettings(registry=address, certificate=pem))
    assert registry.pull("shop", "v1.0.0", tmp_path / "src").version == "v1.0.0"
    with pytest.raises(TidegateError, match="'registry list' is meaningless in local mode"):
        registry.available()
    with pytest.raises(TidegateError) as absent:
        registry.pull("shop", "v9.0.0", tmp_path / "src")
    assert "REGISTRY LIST" not in absent.value.hint and "dist/providers.yaml" in absent.value.hint


def test_a_pull_needs_a_registry_and_a_certificate_or_the_word_of_an_operator(
    server: Server,
) -> None:
    for chosen, named in (
        (CloudSettings(), "cloud.registry"),
        (CloudSettings(), "https://registry.stackql.app/providers"),
        (CloudSettings(registry=server.address), "cloud.certificate"),
        (CloudSettings(registry=server.address), "stackql-signing-bundle.pem"),
        (CloudSettings(registry=server.address, certificate="/nonexistent"), "cloud.certificate"),
    ):
        with pytest.raises(TidegateError) as refusal:
            Registry(chosen)
        assert refusal.value.code is Code.CONFIG_INVALID
        assert named in f"{refusal.value.message} {refusal.value.hint}"
    assert Registry(CloudSettings(registry=server.address, verify=False))


def test_the_command_pulls_into_a_folder_and_names_its_url(
    server: Server, pem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(f'[cloud]\nregistry = "{server.address}"\ncertificate = "{pem}"\n')
    config.chmod(0o600)
    into = tmp_path / "docs"
    words = ["cloud", "pull", "shop", "--folder", str(into), "--config", str(config)]
    assert main([*words, "--state", str(tmp_path / "state")]) == 0
    said = capsys.readouterr()
    assert "pulled shop v1.0.0" in said.out
    assert f"cloud://{into}" in said.err
    assert main(["cloud", "check", str(into)]) == 0


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=1, max_size=8))
def test_the_latest_version_is_the_highest_that_is_no_preview(
    numbers: list[tuple[int, int, int]],
) -> None:
    stable = [f"v{a}.{b}.{c}" for a, b, c in numbers]
    a, b, c = max(numbers)
    assert latest_stable([*stable, f"v{a + 1}.0.0-rc.1"]) == f"v{a}.{b}.{c}"


def test_versions_sort_as_semantic_versioning_says() -> None:
    ordered = [
        "v1.0.0-alpha", "v1.0.0-alpha.1", "v1.0.0-alpha.beta", "v1.0.0-beta", "v1.0.0-beta.2",
        "v1.0.0-beta.11", "v1.0.0-rc.1", "v1.0.0", "v1.0.1",
    ]  # fmt: skip
    mixed = [*ordered[1::2], *ordered[::2]]
    assert sorted(mixed, key=order_of) == ordered
    assert all(map(is_version, ordered)) and not is_version("v1.0") and not is_version("v1.0.0/..")
