"""What the documents of a registry offer, found by name and read when it is first asked for."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import RLock
from typing import Final, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Provider, Resource, ServiceEntry
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.documents.registry import FOLDERS
from tidegate.products.cloud.documents.registry_folder import RegistryFolder
from tidegate.products.cloud.documents.resource_search import ResourceName, matching
from tidegate.products.cloud.documents.service_document import ServiceDocument
from tidegate.products.cloud.settings import CloudProvider

_NAMES: Final = {folder: name for name, folder in FOLDERS.items()}
MOST_DOCUMENTS: Final = 64
"""Service documents that are kept; of more the one that was not asked for longest is read again."""


class Found(NamedTuple):
    """A resource, the document that it is in, and the provider and service that it belongs to."""

    provider: Provider
    service: ServiceEntry
    document: ServiceDocument
    resource: Resource

    @property
    def path(self) -> str:
        """`provider.service.resource`."""
        return f"{self.provider.name}.{self.service.name}.{self.resource.name}"


class DocumentCatalog:
    """The documents of `folder`, of each provider the latest version. Reads files, and may be
    called by several threads at once."""

    def __init__(
        self, folder: RegistryFolder, settings: Mapping[str, CloudProvider] | None = None
    ) -> None:
        """`settings` are those of providers, by name: they may have accounts."""
        self._folder = folder
        self._settings = settings or {}
        self._lock = RLock()
        self._names: list[ResourceName] | None = None
        self._paths: dict[str, str] = {}
        self._providers: dict[str, Provider] = {}
        self._documents: OrderedDict[str, ServiceDocument] = OrderedDict()

    def refresh(self) -> None:
        """Forget what was read: the folder has changed."""
        with self._lock:
            self._paths, self._providers = {}, {}
            self._documents.clear()
            self._names = None

    def providers(self) -> list[Provider]:
        """All providers whose own document can be read, by name: a fault of one is no fault of the
        others."""
        found: list[Provider] = []
        with self._lock:
            for directory in self._directories():
                with suppress(TidegateError):  # said where that provider is asked for
                    found.append(self._read(directory))
        return sorted(found, key=lambda each: each.name)

    def provider_versions(self) -> list[tuple[str, str]]:
        """The names and versions of all providers, also of those whose document cannot be read."""
        found: list[tuple[str, str]] = []
        with self._lock:
            for directory, path in self._directories().items():
                try:
                    provider = self._read(directory)
                except TidegateError:
                    found.append((_NAMES.get(directory, directory), path.split("/")[1]))
                else:
                    found.append((provider.name, provider.version))
        return sorted(found)

    def search(self, words: str) -> list[ResourceName]:
        """Resources of all providers whose paths hold every word, nearest first. The first search
        reads all documents. Raises: TidegateError DOCUMENT_INVALID."""
        with self._lock:
            names = self._names
        if names is None:
            names = [
                ResourceName(provider.name, entry.name, resource)
                for provider in self.providers()
                for entry in provider.services.values()
                for resource in self._folder.resource_names(provider, entry)
            ]
            with self._lock:
                self._names = names
        return matching(names, words)

    def provider(self, name: str) -> Provider:
        """Raises: TidegateError TABLE_UNKNOWN that names the nearest, DOCUMENT_INVALID."""
        with self._lock:
            directories = self._directories()
            directory = FOLDERS.get(folded(name), name)
            if directory in directories and folded(self._read(directory).name) == folded(name):
                return self._read(directory)
            known = self.providers()
        for each in known:
            if folded(each.name) == folded(name):
                return each
        raise _unknown("provider", name, [each.name for each in known], "SHOW PROVIDERS")

    def service(self, provider: Provider, name: str) -> tuple[ServiceEntry, ServiceDocument]:
        """Raises: TidegateError TABLE_UNKNOWN if there is none, or its document is not in the
        registry; DOCUMENT_INVALID."""
        entry = _find(provider.services, name)
        if entry is None:
            raise _unknown(
                f"service of {provider.name}",
                name,
                [each.name for each in provider.services.values()],
                f"SHOW SERVICES IN {provider.name}",
            )
        with self._lock:
            document = self._documents.get(entry.path)
            if document is None:
                read = self._folder.service(provider, entry)
                if read is None:
                    raise TidegateError(
                        Code.TABLE_UNKNOWN,
                        f"The document of {provider.name}.{entry.name} is not in the registry.",
                        hint=f"Pull it: REGISTRY PULL {provider.name}.",
                    )
                document = self._documents[entry.path] = read
                if len(self._documents) > MOST_DOCUMENTS:
                    self._documents.popitem(last=False)
            self._documents.move_to_end(entry.path)
        return entry, document

    def resource(self, path: Iterable[str]) -> Found:
        """The resource at (provider, service, resource). Raises: as `service`."""
        provider_name, service_name, name = path
        provider = self.provider(provider_name)
        entry, document = self.service(provider, service_name)
        with self._lock:
            wanted = next(
                (each for each in document.resource_names if folded(each) == folded(name)), name
            )
            resource = document.resource(wanted)
        if resource is None:
            where = f"{provider.name}.{entry.name}"
            raise _unknown(
                f"resource of {where}", name, document.resource_names, f"SHOW RESOURCES IN {where}"
            )
        return Found(provider, entry, document, resource)

    def _directories(self) -> dict[str, str]:
        """The paths of `provider.yaml` by the provider's folder, the latest version of each."""
        if not self._paths:
            self._paths = {path.split("/")[0]: path for path in self._folder.provider_paths()}
        return self._paths

    def _read(self, directory: str) -> Provider:
        if directory not in self._providers:
            read = self._folder.provider(self._directories()[directory])
            own = self._settings.get(read.name)
            if own is not None and own.accounts:
                read = msgspec.structs.replace(read, accounts=own.accounts)
            self._providers[directory] = read
        return self._providers[directory]


def _find(services: Mapping[str, ServiceEntry], name: str) -> ServiceEntry | None:
    if name in services:
        return services[name]
    wanted = folded(name)
    return next(
        (
            entry
            for key, entry in services.items()
            if wanted in (folded(key), folded(entry.name), folded(entry.id))
        ),
        None,
    )


def _unknown(what: str, name: str, known: Iterable[str], statement: str) -> TidegateError:
    near = difflib.get_close_matches(name, list(known), 1)
    meant = f"Did you mean `{near[0]}`? " if near else ""
    return TidegateError(
        Code.TABLE_UNKNOWN,
        f"There is no {what} with the name `{name[:120]}`.",
        hint=f"{meant}{statement} lists them.",
    )
