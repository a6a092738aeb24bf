"""Settings of the metrics: the section `metrics`."""

from __future__ import annotations

from typing import ClassVar

from tidegate.config.addresses import http_address
from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.secrets.references import READ_ANYWHERE, check_references, is_reference


class MetricsSettings(Section, frozen=True, forbid_unknown_fields=True):
    """Where Prometheus reads the figures of the gate.

    `listen` is HOST:PORT; none: nowhere. Figures are at `/metrics` there, beside `/health` and
    `/ready`. They name sources and tools, and no caller, statement or value. With `token`, a
    reference such as `${FILE:/run/secrets/metrics}`, they are for those alone who send it as a
    bearer token. At an address that is not of this machine alone the server speaks HTTPS there if
    it has a certificate.
    """

    NAME: ClassVar[str] = "metrics"

    listen: str | None = None
    token: str | None = None

    @property
    def listen_address(self) -> str | None:
        return self.listen

    @property
    def needed_extra(self) -> str | None:
        return None if self.listen is None else "metrics"

    def check(self, config: Config) -> None:
        """Raises: TidegateError CONFIG_INVALID."""
        if self.listen is not None:
            http_address(self.listen)
        if self.token is not None:
            if not is_reference(self.token, READ_ANYWHERE):
                raise invalid(
                    "`metrics.token` is no reference to a secret.",
                    hint="Write ${FILE:/path} or ${ENV:NAME}, and the token there.",
                )
            check_references(self.token, READ_ANYWHERE)
