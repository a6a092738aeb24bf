"""Figures of the gate for Prometheus."""
