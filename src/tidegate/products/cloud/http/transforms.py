"""The transforms of provider documents: which there are, and whether one can be used."""

from __future__ import annotations

import re
from typing import Final

from tidegate.products.cloud.documents.model import Transform
from tidegate.products.cloud.documents.template_functions import TemplateError
from tidegate.products.cloud.http.go_template import parse_template

TEMPLATE: Final = re.compile(r"golang_template_(json|text|mxj)_v0\.[1-3]\.0")
"""A Go template; the group says what it is given: values of JSON, the text, or values of XML."""
SCHEMA_DRIVEN_XML: Final = "schema_driven_xml_v0.1.0"
"""XML to rows by the names in the schema of the response."""


def problem_of(transform: Transform) -> str | None:
    """Why a transform cannot be used; None if it can."""
    if transform.kind == SCHEMA_DRIVEN_XML:
        return None
    if not TEMPLATE.fullmatch(transform.kind):
        return f"the transform `{transform.kind[:60]}` is not known"
    try:
        parse_template(transform.template)
    except TemplateError as error:
        return f"its template is not understood: {error}"
    return None
