"""Traces as long as a server runs, and says what the collector does not take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tidegate import __version__
from tidegate.app import App
from tidegate.audit.shipped import gate_id
from tidegate.config.installation import add_command
from tidegate.errors import Code, TidegateError
from tidegate.model.worker_share import own_share
from tidegate.products.otel.settings import OtelSettings
from tidegate.service import Figure

if TYPE_CHECKING:  # the SDK is imported by servers that trace
    from tidegate.products.otel.export import Export
    from tidegate.products.otel.sampling import Limit

_NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.common")


def make_service(app: App) -> OtelService | None:
    """What traces the calls of this process; None without a collector. Raises: TidegateError
    ENGINE_MISSING."""
    settings = app.config.section(OtelSettings)
    if settings.endpoint is None:
        return None
    if not all(map(_is_installed, _NEEDED)):
        raise TidegateError(
            Code.ENGINE_MISSING,
            "`otel.endpoint` needs OpenTelemetry's SDK, which is not installed.",
            hint=f"Run: {add_command('otel')}",
        )
    return OtelService(app, settings)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that it would be in
        return False


class OtelService:
    """A `service.Service`."""

    def __init__(self, app: App, settings: OtelSettings) -> None:
        self._app = app
        self._settings = settings
        self._export: Export | None = None
        self._limit: Limit | None = None
        self._seen = 0
        """Spans that were dropped when the collector last worked."""

    def start(self) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        from tidegate.gateway.source_labels import SourceLabels
        from tidegate.products.otel import conventions as names
        from tidegate.products.otel.durations import Durations
        from tidegate.products.otel.export import Export
        from tidegate.products.otel.sampling import Limit
        from tidegate.products.otel.tracer import OtelTracer

        app, settings = self._app, self._settings
        try:
            gate = gate_id(app.directory / "audit")
        except OSError:  # the record says so
            gate = "unknown"
        # Not `Resource.create`, which adds what is in variables of the environment.
        resource = Resource({
            names.SERVICE_NAME: settings.service_name,
            names.SERVICE_VERSION: __version__,
            names.SERVICE_INSTANCE: f"{gate}-{app.gateway.run_id}",
        })  # fmt: skip
        durations = Durations(resource)
        read = durations.read if settings.metrics else None
        export = Export(settings, read, app.config.stop_grace_s)
        provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
        provider.add_span_processor(export)
        limit = Limit(settings.sample_ratio, settings.traces_per_s / own_share().count)
        spans = provider.get_tracer(names.SCOPE, __version__)
        labels = SourceLabels(lambda name: True)  # a statement runs on sources of the gate alone
        self._export, self._limit = export, limit
        export.start()
        app.tracing.tracer = OtelTracer(spans, limit, durations, labels)

    def stop(self) -> None:
        self._app.tracing.tracer = None
        if self._export is not None:
            self._export.stop()

    def problems(self) -> Mapping[str, str]:
        export = self._export
        if export is None or not export.failure:
            return {}
        return {"tracing": f"{export.failure} ({export.dropped} spans dropped)"}

    def figures(self) -> Iterable[Figure]:
        export, limit = self._export, self._limit
        if export is None or limit is None:
            return
        for name, about, value in (
            ("spans_sent", "Spans that the collector has taken.", export.sent),
            ("spans_dropped", "Spans that were lost: no place, or refused.", export.dropped),
            ("spans_waiting", "Spans that are not sent yet.", export.waiting),
            ("traces_limited", "Requests over `otel.traces_per_s`, not traced.", limit.refused),
            ("metrics_failed", "Reports of metrics that did not arrive.", export.metrics_failed),
            ("failing", "1 where the last request to the collector failed.", bool(export.failure)),
        ):
            yield Figure(f"tidegate_otel_{name}", about, float(value))
