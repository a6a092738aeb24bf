"""The one prompt of the document."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.protocol.model import PromptMessage, PromptResult
from tidegate.protocol.model import text as text_block
from tidegate.surfaces.api import SurfacePrompt
from tidegate.surfaces.tool_context import ToolContext

NAME = "write_safe_select"
DESCRIPTION = "Guidance for writing safe SELECT queries against stackql resources."
TEXT = (
    "In order to ascertain the best safe select query, the correct query form is:\n"
    "\t>   SHOW methods IN <provider>.<service>.<resource>;\n"
    "From the output, one can infer the best access method for the SQL"
    ' "select" verb and the **required** WHERE clause attributes.\n'
)


async def _render(context: ToolContext, arguments: Mapping[str, str]) -> PromptResult:
    return PromptResult([PromptMessage("user", text_block(TEXT))], DESCRIPTION)


PROMPTS = (SurfacePrompt(NAME, _render, description=DESCRIPTION),)
