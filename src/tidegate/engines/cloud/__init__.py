"""Cloud and SaaS APIs behind the engine interface."""

from tidegate.engines.cloud.engine import CloudEngine as CloudEngine
