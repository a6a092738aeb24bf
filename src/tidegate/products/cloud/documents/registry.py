"""A registry that provider documents are fetched from, over HTTP or in a folder (`file://`).

Below its address it has `dist/providers.yaml` with the versions of each provider, and
`dist/<provider>/<version>.tgz` with the documents of one. Everything here blocks: run it on a
thread.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import Access, Downloader, Origin, Stop, never
from tidegate.paths import expand
from tidegate.products.cloud.documents.archive import unpack_provider
from tidegate.products.cloud.documents.registry_folder import is_version, latest_stable, order_of
from tidegate.products.cloud.documents.signatures import Verifier
from tidegate.products.cloud.documents.tree import mapping, sequence
from tidegate.products.cloud.documents.yaml_reader import read_yaml
from tidegate.products.cloud.settings import CloudSettings

FOLDERS: Final = {"google": "googleapis.com"}
"""Providers whose folder has another name."""
PUBLIC: Final = "https://registry.stackql.app/providers"
"""The registry that StackQL asks by default."""
PUBLIC_CERTIFICATE: Final = (
    "`stackql-signing-bundle.pem` in the public repository stackql/stackql-provider-registry, below"
    " `signing`"
)
_LIST: Final = "dist/providers.yaml"
_MOST_LIST_BYTES: Final = 8 * 1_048_576
_MOST_ARCHIVE_BYTES: Final = 256 * 1_048_576
_PROVIDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ORIGIN: Final = Origin(
    "The registry of provider documents",
    Code.DOCUMENT_REGISTRY,
    "Use the address of a registry that asks for no login.",
    "Give the proxy's account in HTTPS_PROXY.",
    "cloud.ca_file",
)


class Available(NamedTuple):
    """One version of a provider that a registry offers."""

    provider: str
    version: str


class Registry:
    """The registry of `settings`. `stop` says whether the caller has gone away."""

    def __init__(self, settings: CloudSettings, stop: Stop = never) -> None:
        """Raises: TidegateError CONFIG_INVALID if no registry is set, or no certificate although
        signatures must be verified; DOCUMENT_UNTRUSTED for an invalid certificate."""
        if settings.registry is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                "No registry of provider documents is set.",
                hint="Set `cloud.registry` to its address, https or file://. StackQL's public one"
                f" is {PUBLIC}.",
            )
        self.address = settings.registry
        self._folder: Path | None = None
        self._downloader: Downloader | None = None
        if settings.registry.startswith("file://"):
            self._folder = Path(unquote(urlsplit(settings.registry).path))
        else:
            access = Access(ca_file=settings.ca_file)
            self._downloader = Downloader(settings.registry, access, _ORIGIN, stop)
        self._verifier = verifier_of(settings, is_required=True)

    def available(self, provider: str = "") -> list[Available]:
        """The latest stable version of each provider, by name; of one provider all versions.

        Raises: TidegateError UNSUPPORTED for a registry in a folder, DOCUMENT_REGISTRY,
        DOCUMENT_INVALID.
        """
        if self._folder is not None:
            raise TidegateError(
                Code.UNSUPPORTED,
                "'registry list' is meaningless in local mode: the registry is a folder.",
                hint="SHOW PROVIDERS lists the providers that are there.",
            )
        versions = self._versions()
        if provider:
            return [Available(provider, each) for each in versions.get(provider, [])]
        latest = ((name, latest_stable(each)) for name, each in sorted(versions.items()))
        return [Available(name, version) for name, version in latest if version is not None]

    def pull(self, provider: str, version: str, src: Path) -> Available:
        """Fetch the documents of a provider, verify them and put them below `src`, the folder with
        `<provider>/<version>`. Without a version: the latest stable one.

        Raises: TidegateError ARGUMENT_INVALID for a provider or version that is not there;
        DOCUMENT_REGISTRY, DOCUMENT_UNTRUSTED, DOCUMENT_INVALID; OSError of `src`.
        """
        if not _PROVIDER.fullmatch(provider) or (version and not is_version(version)):
            raise self._unknown(provider, version, "it is not the name of one")
        wanted = version or self._latest(provider)
        folder = FOLDERS.get(provider, provider)
        path = f"dist/{folder}/{wanted}.tgz"
        content = self._read(path, _MOST_ARCHIVE_BYTES)
        if content is None:
            raise self._unknown(provider, wanted, f"{self.address} has no {path}")
        unpack_provider(BytesIO(content), folder, wanted, src, self._verifier)
        return Available(provider, wanted)

    def _latest(self, provider: str) -> str:
        known = self._versions()
        if provider not in known:
            raise self._unknown(provider, "", f"{self.address} does not list it")
        found = latest_stable(known[provider])
        if found is None:
            raise self._unknown(provider, "", "it has no stable version; name one")
        return found

    def _versions(self) -> dict[str, list[str]]:
        """The versions of each provider, in their order. What is no name or version is left out."""
        content = self._read(_LIST, _MOST_LIST_BYTES)
        if content is None:
            raise TidegateError(
                Code.DOCUMENT_REGISTRY, f"The registry at {self.address} has no {_LIST}."
            )
        entries = mapping(mapping(read_yaml(content, _LIST)).get("providers"))
        return {
            name: sorted(
                (str(each) for each in sequence(mapping(entry).get("versions"))
                 if is_version(str(each))),
                key=order_of,
            )
            for name, entry in entries.items()
            if _PROVIDER.fullmatch(name)
        }  # fmt: skip

    def _unknown(self, provider: str, version: str, reason: str) -> TidegateError:
        named = f" in the version {version[:40]}" if version else ""
        hint = "REGISTRY LIST shows the providers and their versions."
        if self._folder is not None:
            hint = f"`{_LIST}` in the registry's folder lists them."
        return TidegateError(
            Code.ARGUMENT_INVALID,
            f"The provider {provider[:80]}{named} cannot be pulled: {reason}.",
            hint=hint,
        )

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        if self._downloader is not None:
            return self._downloader.get(path, most_bytes)
        assert self._folder is not None  # noqa: S101 - one of the two is there
        try:
            with (self._folder / path).open("rb") as file:
                content = file.read(most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror or type(error).__name__
        else:
            if len(content) <= most_bytes:
                return content
            reason = f"it has more than {most_bytes:,} bytes"
        raise TidegateError(
            Code.DOCUMENT_REGISTRY,
            f"{path} of the registry {self.address} cannot be read: {reason}.",
        )


def verifier_of(settings: CloudSettings, *, is_required: bool = False) -> Verifier | None:
    """What verifies documents by these settings; None if they are not verified.

    Raises: TidegateError CONFIG_INVALID for a certificate that cannot be read or, if it
    `is_required`, that is not set; DOCUMENT_UNTRUSTED.
    """
    if not settings.verify:
        return None
    if settings.certificate is None:
        if not is_required:
            return None
        raise TidegateError(
            Code.CONFIG_INVALID,
            "Provider documents are verified, and no certificate is set for that.",
            hint="Set `cloud.certificate` to the file of the registry's certificate, or"
            f" `cloud.verify` to false. The certificate of StackQL's registry is"
            f" {PUBLIC_CERTIFICATE}.",
        )
    try:
        pem = expand(settings.certificate).read_bytes()
    except OSError as error:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`cloud.certificate` cannot be read: {settings.certificate}: {error.strerror}.",
            details={"path": settings.certificate},
        ) from None
    return Verifier(pem)
