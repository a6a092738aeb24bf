"""Settings of OpenTelemetry: the section `otel`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.model import Config, Count
from tidegate.config.receivers import check_ca_file, check_receiver
from tidegate.config.sections import Section
from tidegate.secrets.references import READ_ANYWHERE, check_references, hide_references

_MOST_NAME = 64


class OtelSettings(Section, frozen=True, forbid_unknown_fields=True):
    """Where traces and metrics are sent, by OTLP over HTTP; without `endpoint` nowhere. A collector
    that does not answer stops no call: what it does not take in time is dropped, and counted.

    A caller's trace context makes its trace the parent of ours. It decides neither how many
    requests are traced nor that one is: a request that it marks as not sampled is not traced, and
    one that it marks as sampled is if the limits here admit it.
    """

    NAME: ClassVar[str] = "otel"

    endpoint: str | None = None
    """The collector, such as `http://127.0.0.1:4318`: `/v1/traces` and `/v1/metrics` are added to
    it (`http://` on this machine alone). One with a path is read from a settings file alone, as the
    path may be a secret; the secret part of it is better written as a reference."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Headers of each request to it. A secret in a value is written as a reference, `${FILE:/path}`
    or `${ENV:NAME}`; one without a reference is read from a settings file alone."""
    ca_file: str | None = None
    """A PEM file with a further authority to trust."""
    service_name: str = "tidegate"
    """What the collector calls this server (`service.name`)."""
    sample_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """The share of requests that are traced. Those of one trace are traced all, or none."""
    traces_per_s: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 100
    """At most so many requests are traced in a second, by all workers together and on average,
    whatever their callers ask for."""
    metrics: bool = True
    """Whether durations are sent as metrics; they count every request, traced or not."""
    metrics_interval_s: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 60.0
    """Between two reports of the metrics."""
    flush_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    """How long a span waits for others, with which it is sent."""
    max_queue: Count = 2_048
    """Spans that wait for the collector; further ones are dropped."""

    def secret_addresses(self) -> Iterable[str]:
        # Some collectors know their senders by the path, or by a header of their own name.
        if self.endpoint is not None and urlsplit(self.endpoint).path not in ("", "/"):
            yield "otel.endpoint"
        if any(hide_references(value) == value for value in self.headers.values()):
            yield "otel.headers"

    @property
    def needed_extra(self) -> str | None:
        return None if self.endpoint is None else "otel"

    def check(self, config: Config) -> None:
        """Raises: TidegateError CONFIG_INVALID, which does not hold the URL."""
        if not self.service_name.isprintable() or not 0 < len(self.service_name) <= _MOST_NAME:
            raise invalid(f"`otel.service_name` is no name of 1 to {_MOST_NAME} characters.")
        if self.endpoint is None:
            return
        checked = hide_references(self.endpoint)
        check_receiver("`otel.endpoint`:", checked, self.headers, what="traces")
        check_references(self.endpoint, READ_ANYWHERE)
        if self.ca_file is not None and not self.endpoint.lower().startswith("https:"):
            raise invalid("`otel.ca_file` is for https alone.")

    def check_files(self, config: Config) -> None:
        """Read the certificates. Raises: TidegateError CONFIG_INVALID."""
        if self.ca_file is not None:
            check_ca_file("`otel.ca_file`", self.ca_file)
