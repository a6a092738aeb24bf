"""Cloud and SaaS APIs as an engine."""

from tidegate.products.cloud.engine.engine import CloudEngine as CloudEngine
