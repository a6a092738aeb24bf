"""Traces and metrics by OpenTelemetry, sent to a collector."""
