"""Model values as the JSON of one revision. Pure; lists and results are encoded once.

Older clients never see a field or a content type that their revision does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.protocol.jsonrpc import encode, quote
from tidegate.protocol.model import (
    Ask,
    Completion,
    Content,
    Prompt,
    PromptResult,
    Resource,
    ResourceTemplate,
    ResourceText,
    Tool,
    ToolResult,
)
from tidegate.protocol.revisions import Revision

COMPLETE = b'"resultType":"complete",'


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def tool(value: Tool, revision: Revision) -> dict[str, Any]:
    fields = _present(
        name=value.name,
        title=value.title if revision.titles else None,
        description=value.description,
        inputSchema=value.input_schema,
    )
    if revision.structured and value.output_schema is not None:
        fields["outputSchema"] = value.output_schema
    if revision.annotations and value.annotations is not None:
        fields["annotations"] = value.annotations
    if revision.meta_in_lists and value.meta is not None:
        fields["_meta"] = value.meta
    if value.app:
        fields["_meta"] = {**fields.get("_meta", {}), "ui": {"resourceUri": value.app}}
    return fields


def resource(value: Resource, revision: Revision) -> dict[str, Any]:
    return _present(
        uri=value.uri,
        name=value.name,
        title=value.title if revision.titles else None,
        description=value.description,
        mimeType=value.mime_type,
        size=value.size,
        _meta=value.meta if revision.meta_in_lists else None,
    )


def resource_template(value: ResourceTemplate, revision: Revision) -> dict[str, Any]:
    return _present(
        uriTemplate=value.uri_template,
        name=value.name,
        title=value.title if revision.titles else None,
        description=value.description,
        mimeType=value.mime_type,
    )


def prompt(value: Prompt, revision: Revision) -> dict[str, Any]:
    fields = _present(
        name=value.name,
        title=value.title if revision.titles else None,
        description=value.description,
    )
    if value.arguments:
        fields["arguments"] = [
            _present(
                name=argument.name,
                title=argument.title if revision.titles else None,
                description=argument.description,
                required=argument.required,
            )
            for argument in value.arguments
        ]
    return fields


def content(block: Content, revision: Revision) -> Content:
    """A content block, or what an older client can show in its place."""
    kind = block.get("type")
    if kind == "audio" and not revision.audio:
        return {"type": "text", "text": f"[audio, {block.get('mimeType', 'unknown type')}]"}
    if kind == "resource_link" and not revision.titles:
        return {"type": "text", "text": str(block.get("uri", ""))}
    return block


def tool_result(result: ToolResult, revision: Revision, server_meta: bytes) -> bytes:
    """`CallToolResult`. The body is spliced in, never decoded."""
    body = result.body
    if result.content is not None:
        blocks = encode([content(block, revision) for block in result.content])
    else:
        blocks = b'[{"type":"text","text":' + quote(body or b"") + b"}]"
    parts = [b"{", COMPLETE if revision.modern else b"", b'"content":', blocks]
    if body is not None and result.structured and revision.structured:
        parts += (b',"structuredContent":', body)
    if result.is_error:
        parts.append(b',"isError":true')
    if result.meta is not None:
        own = server_meta if revision.modern else b""
        parts += (b',"_meta":', _merge_meta(result.meta, own))
    elif revision.modern:
        parts += (b',"_meta":', server_meta)
    parts.append(b"}")
    return b"".join(parts)


def _merge_meta(meta: Mapping[str, Any], server_meta: bytes) -> bytes:
    own = encode(meta)
    if own == b"{}":
        return server_meta or own
    return own[:-1] + b"," + server_meta[1:] if server_meta else own


def modern_result(fields: Mapping[str, Any], server_meta: bytes) -> bytes:
    """A result of the stateless era: typed, and with the server's identity."""
    inner = encode(fields)[1:-1]
    return (
        b'{"resultType":"complete",' + inner + (b"," if inner else b"") + b'"_meta":'
        + server_meta + b"}"
    )  # fmt: skip


def input_requests(asks: Mapping[str, Ask]) -> dict[str, Any]:
    """What is asked of a client, by its keys."""
    return {key: {"method": ask.method, "params": ask.params} for key, ask in asks.items()}


def resource_contents(values: Iterable[ResourceText]) -> list[dict[str, Any]]:
    return [
        _present(
            uri=value.uri,
            mimeType=value.mime_type,
            text=value.text,
            blob=value.blob,
            _meta=value.meta,
        )
        for value in values
    ]


def prompt_result(result: PromptResult, revision: Revision) -> dict[str, Any]:
    fields = _present(description=result.description)
    fields["messages"] = [
        {"role": message.role, "content": content(message.content, revision)}
        for message in result.messages
    ]
    return fields


def completion(value: Completion) -> dict[str, Any]:
    shown: Sequence[str] = value.values[:100]
    fields = _present(values=shown, total=value.total)
    fields["hasMore"] = value.has_more or len(value.values) > len(shown)
    return {"completion": fields}


def capabilities(full: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """The server's capabilities as one revision knows them."""
    own = {name: dict(value) for name, value in full.items()}
    if revision.modern:
        return own
    own.pop("extensions", None)
    if revision.name == "2024-11-05":
        own.pop("completions", None)
    return own
