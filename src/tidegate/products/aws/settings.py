"""Settings of AWS: the section `aws`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tidegate.config.sections import Section


class AwsSettings(Section, frozen=True, forbid_unknown_fields=True):
    """The account of AWS whose secrets `${AWS:NAME#FIELD}` and `${RDS:USER@HOST:PORT}` refer to.

    The credentials are those that AWS' own library finds: variables, a profile, the role of the
    machine or of the pod. `profile` names the profile, `region` the region of what does not name
    one itself. It has `timeout_s` to answer.
    """

    NAME: ClassVar[str] = "aws"

    region: str | None = None
    profile: str | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0
