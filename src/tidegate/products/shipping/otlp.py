"""OTLP logs over HTTP, as protobuf.

A batch is one request, and is acknowledged by its answer. The batch processor of OpenTelemetry's
own library is not used: it throws away what does not fit into its queue.
"""

from __future__ import annotations

from tidegate import __version__
from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest
from tidegate.paths import expand
from tidegate.products.shipping.destination import (
    DeliveryFailed,
    Rejected,
    TooLarge,
    read_events,
)
from tidegate.products.shipping.protobuf import (
    attribute,
    export_request,
    log_record,
    rejected_in,
)
from tidegate.products.shipping.settings import DestinationSettings
from tidegate.retrying_http import retry_after
from tidegate.secrets.references import resolve, resolve_option

TIMEOUT_S = 30.0
_MOST_ANSWER_BYTES = 1_048_576
_SEVERITIES = {1: 9, 2: 10, 3: 13, 4: 17}
"""`severity_number` (info, info 2, warn, error) by the severity of OCSF."""
_TYPE = "application/x-protobuf"


class OtlpDestination:
    """Sends requests to `/v1/logs` of a collector or of a backend."""

    def __init__(self, settings: DestinationSettings, gate: str, rejected: Rejected) -> None:
        ca_file = None if settings.ca_file is None else str(expand(settings.ca_file))
        self._client = HttpClient(
            ClientRules(
                max_bytes=_MOST_ANSWER_BYTES, total_s=TIMEOUT_S, ca_file=ca_file,
                ca_setting="ship.to.ca_file", proxies=None,
            )
        )  # fmt: skip
        self._settings = settings
        self._rejected = rejected
        self._resource = {
            "service.name": "tidegate",
            "service.version": __version__,
            "service.instance.id": gate,
        }
        self._taken = 0

    def send(self, events: bytes) -> None:
        request = HttpRequest(
            url=resolve(self._settings.url),
            verb="POST",
            headers=(("Content-Type", _TYPE), ("Accept", _TYPE)),
            credentials=[
                (name, resolve_option(value).strip())
                for name, value in self._settings.headers.items()
            ],
            body=self._encode(events),
            name="the receiver of OTLP",
            networks=None,  # the operator names the host
        )
        response = self._client.send_blocking(request)
        if response.status == 413 and events.count(b"\n") > 1:
            raise TooLarge(f"the receiver takes no {len(request.body or b''):,} bytes at once")
        if response.status != 200:
            raise DeliveryFailed(
                f"the receiver answered with HTTP status {response.status}",
                retry_after(response.headers.get("retry-after")),
            )
        self._read_answer(response.headers.get("content-type", ""), response.body)
        self._taken += 1

    def acknowledged(self) -> int:
        return self._taken

    def reset(self) -> None:
        self._taken = 0

    def _encode(self, events: bytes) -> bytes:
        records = (
            log_record(
                each.time_ms * 1_000_000,
                _SEVERITIES.get(each.severity, 9),
                f"tidegate.{each.name}",
                each.body,
                (attribute("log.record.uid", each.uid.encode()),),
                each.trace_id,
            )
            for each in read_events(events)
        )
        return export_request(self._resource, "tidegate.audit", __version__, records)

    def _read_answer(self, kind: str, body: bytes) -> None:
        """Raises: TidegateError PROVIDER_REPLY for what is no answer of OTLP, such as the page of a
        proxy, which took nothing."""
        if not body:
            return
        try:
            if not kind.startswith(_TYPE):
                raise ValueError(kind)
            count, why = rejected_in(body)
        except (ValueError, IndexError):
            raise TidegateError(
                Code.PROVIDER_REPLY,
                "The receiver of OTLP answered with what is no answer of OTLP.",
                hint="Check the URL; it ends in /v1/logs as a rule.",
            ) from None
        if count:
            self._rejected(count, why)
