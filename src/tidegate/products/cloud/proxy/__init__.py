"""Cloud providers of a backing server, which is reached by PostgreSQL's wire protocol."""

from tidegate.products.cloud.proxy.engine import CloudProxyEngine

__all__ = ["CloudProxyEngine"]
