"""A registry of provider documents in a folder, with the layout of the public registry.

`src/<provider>/<version>/provider.yaml` and, for each service, the file that it names below `src`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.document_cache import DocumentCache
from tidegate.products.cloud.documents.model import Provider, ServiceEntry
from tidegate.products.cloud.documents.provider_document import read_provider
from tidegate.products.cloud.documents.resource_search import names_in
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.documents.signatures import Verifier
from tidegate.products.cloud.documents.split_documents import whole_document
from tidegate.products.cloud.documents.yaml_reader import MOST_BYTES, refused

_VERSION: Final = re.compile(
    r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]{1,60})?"
)


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def order_of(version: str) -> tuple[tuple[int, int, int], bool, tuple[tuple[int, int, str], ...]]:
    """What versions sort by (semver.org 2.0.0, section 11); what is no version comes first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, -1, -1), False, ((1, 0, version),)
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    if match[4] is None:
        return numbers, True, ()
    parts = match[4].split(".")
    return (
        numbers,
        False,
        tuple((0, int(each), "") if each.isdecimal() else (1, 0, each) for each in parts),
    )


def latest_stable(versions: Iterable[str]) -> str | None:
    """The highest version that is no preview; None if there is none."""
    stable = [each for each in versions if is_version(each) and order_of(each)[1]]
    return max(stable, key=order_of, default=None)


_SIGNATURE: Final = ".sig"
_NO_CACHE: Final = DocumentCache(None)


class RegistryFolder:
    """The registry in `folder`, or in the folder whose `src` it is."""

    def __init__(
        self,
        folder: Path,
        verifier: Verifier | None = None,
        cache: DocumentCache = _NO_CACHE,
    ) -> None:
        """With a `verifier` each document must have a signature, `<document>.sig`, that holds."""
        self._verifier = verifier
        self._cache = cache
        self._src = folder / "src" if (folder / "src").is_dir() else folder
        if not self._src.is_dir():
            raise TidegateError(
                Code.DOCUMENT_INVALID,
                f"{folder} is no folder.",
                hint="Name a folder that holds `src/<provider>/<version>/provider.yaml`.",
            )
        self._real_src = self._src.resolve()

    @property
    def src(self) -> Path:
        """The folder with `<provider>/<version>`."""
        return self._src

    def provider_paths(self) -> Iterator[str]:
        """The paths of all `provider.yaml`, below `src`, sorted; of one provider the versions in
        their order."""
        found = self._src.glob("*/*/provider.yaml")
        for path in sorted(found, key=lambda each: (each.parts[-3], order_of(each.parts[-2]))):
            yield path.relative_to(self._src).as_posix()

    def provider(self, path: str) -> Provider:
        """Raises: TidegateError DOCUMENT_INVALID."""
        content = self._read(path)
        if content is None:
            raise refused(path, "it is not there")
        return read_provider(content, path, self._cache.read)

    def service(self, provider: Provider, entry: ServiceEntry) -> ServiceDocument | None:
        """A service of a provider; None if its document is not in this registry.

        Raises: TidegateError DOCUMENT_INVALID.
        """
        content = self._read(entry.path) if entry.path else None
        if content is None:
            return None

        def read(path: str) -> Any:
            found = self._read(path)
            if found is None:
                raise refused(entry.path, f"it names {path}, which is not there")
            return self._cache.read(found, path)

        tree = self._cache.read(content, entry.path)
        tree = whole_document(tree, entry.path, entry.path.partition("/")[0], read)
        return ServiceDocument(tree, entry.path, provider)

    def resource_names(self, provider: Provider, entry: ServiceEntry) -> list[str]:
        """The names of a service's resources, by the lines of its document where they tell; none if
        the document is not in this registry, or cannot be read."""
        try:
            content = self._read(entry.path) if entry.path else None
            names = [] if content is None else names_in(content)
            if not names and entry.lists_resources:
                names = None
            if names is None:
                document = self.service(provider, entry)
                names = [] if document is None else list(document.resource_names)
        except TidegateError:
            return []  # `tidegate cloud check` names the fault
        return names

    def _read(self, path: str) -> bytes | None:
        try:
            real = (self._src / path).resolve(strict=True)
            if not real.is_relative_to(self._real_src):
                raise refused(path, "it is a link that leads out of the registry")
            if not real.is_file():  # to open a pipe would wait for its writer
                raise refused(path, "it is no file")
            with real.open("rb") as file:
                # One byte more than the reader takes: it refuses what is longer.
                content = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused(path, f"it cannot be read: {error.strerror or error}") from None
        if self._verifier is not None and not path.endswith(_SIGNATURE):
            signature = self._read(f"{path}{_SIGNATURE}")
            if signature is None:
                raise TidegateError(
                    Code.DOCUMENT_UNTRUSTED,
                    f"{path} is not trusted: it has no signature.",
                    hint="Pull the provider again, or set `cloud.verify` to false.",
                )
            self._verifier.verify(content, signature, path)
        return content
