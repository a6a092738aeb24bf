"""Cloud and SaaS APIs behind the engine interface."""

from tidegate.products.cloud.engine.engine import CloudEngine as CloudEngine
