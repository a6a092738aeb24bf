"""The published schema of one revision as a judge of messages that a server sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator

from wire.condense import SCHEMAS
from wire.wires import MODERN

RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
ERRORS = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
CLOSED = (
    "AudioContent", "BlobResourceContents", "EmbeddedResource", "ImageContent", "Implementation",
    "Prompt", "PromptArgument", "PromptMessage", "Resource", "ResourceContents",
    "ResourceTemplate", "TextContent", "TextResourceContents", "Tool", "ToolAnnotations",
)  # fmt: skip
"""Definitions that we take for closed: a member that the revision does not name is a fault."""


class Published:
    """One revision. Every `check` raises `jsonschema.ValidationError` at the first fault."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self._schema = json.loads((SCHEMAS / f"{revision}.json").read_text())
        self._place = "$defs" if "$defs" in self._schema else "definitions"
        self.definitions: dict[str, Any] = self._schema[self._place]
        for name in CLOSED:
            definition = self.definitions.get(name)
            if definition is not None and "properties" in definition:
                definition.setdefault("additionalProperties", False)
        self._methods = self._find_methods()
        self._validators: dict[str, Any] = {}

    def check(self, definition: str, value: Any) -> None:
        """Validate against one definition."""
        validator = self._validators.get(definition)
        if validator is None:
            kind = Draft202012Validator if self._place == "$defs" else Draft7Validator
            pointer = {"$ref": f"#/{self._place}/{definition}"}
            validator = self._validators[definition] = kind({**self._schema, "allOf": [pointer]})
        validator.validate(value)

    def check_message(self, method: str | None, message: Any) -> None:
        """Validate what came while `method` was answered: a reply, a notification, a request.

        An error whose request has no readable id has the id null up to 2025-06-18, as JSON-RPC
        wants it; the schemas of that time have no word for this case.
        """
        if isinstance(message, list):
            for member in message:
                self.check_message(None, member)
            self.check("JSONRPCMessage", [_named(member) for member in message])
            return
        self.check("JSONRPCMessage", _named(message) if self.revision < "2025-11-25" else message)
        if "method" in message:
            definition = self._methods.get(message["method"])
            if definition is not None:
                self.check(definition, message)
        elif "result" in message and method is not None:
            self.check_result(method, message["result"])
        elif "error" in message:
            self.check_error(message)

    def check_result(self, method: str, result: Mapping[str, Any]) -> None:
        if result.get("resultType") == "input_required":
            assert self.revision == MODERN
            assert method in ("tools/call", "prompts/get", "resources/read")
            self.check("InputRequiredResult", result)
        else:
            self.check(RESULTS[method], result)

    def check_error(self, message: Mapping[str, Any]) -> None:
        definition = ERRORS.get(message["error"]["code"])
        if self.revision == MODERN and definition is not None:
            self.check(definition, message)

    def _find_methods(self) -> dict[str, str]:
        """Method -> definition, for notifications and requests."""
        return {
            definition["properties"]["method"]["const"]: name
            for name, definition in self.definitions.items()
            if name.endswith(("Notification", "Request"))
            and "const" in definition.get("properties", {}).get("method", {})
        }


def _named(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if "error" in message and message.get("id") is None:
        return {**message, "id": "unknown"}
    return message


@cache
def published(revision: str) -> Published:
    return Published(revision)
