"""Styles of public APIs whose fields are called as nowhere else, found by trying others: totals
that are `numFound` or `recordsFiltered`, tokens below `additional_data`, objects with the
parameters of the next page, flags that say that a list is not done, and tokens for later that are
no page.

Each serves the rows of `paging_styles`, as the references of the API that it is called after say.
"""

from __future__ import annotations

import json
from typing import Any

from support.paging_styles import (
    HOST,
    ROWS,
    SIZE,
    Query,
    Style,
    cursor_page,
    numbered_page,
    rows_from,
)


def _odata_count(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("$skip", 0))
    return ({"@odata.context": "x", "@odata.count": ROWS, "value": rows_from(start)}, {})


def _reddit(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return (
        {
            "kind": "Listing",
            "data": {
                "after": None if is_last else f"c{start + SIZE}",
                "dist": len(rows),
                "modhash": "",
                "before": None,
                "children": rows,
            },
        },
        {},
    )


def _pipedrive(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("start", 0))
    is_last = start + SIZE >= ROWS
    page = {"start": start, "limit": 3, "more_items_in_collection": not is_last}
    if not is_last:
        page["next_start"] = start + SIZE
    return (
        {"success": True, "data": rows_from(start), "additional_data": {"pagination": page}},
        {},
    )


def _pipedrive2(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    return (
        {
            "success": True,
            "data": rows,
            "additional_data": {"next_cursor": None if is_last else f"c{start + SIZE}"},
        },
        {},
    )


def _zoho(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return (
        {
            "data": rows,
            "info": {
                "per_page": 3,
                "count": len(rows),
                "page": number + 1,
                "more_records": not is_last,
                "sort_by": "id",
            },
        },
        {},
    )


def _clickup(query: Query) -> tuple[Any, dict[str, str]]:
    _number, rows, is_last = numbered_page(query, first=0)
    return ({"tasks": rows, "last_page": is_last}, {})


def _chargebee(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("offset", '["0"]').strip('[]"'))
    rows = rows_from(start)
    is_last = start + SIZE >= ROWS
    return ({"list": rows, **({} if is_last else {"next_offset": f'["{start + SIZE}"]'})}, {})


def _gocardless(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return (
        {
            "payments": rows,
            "meta": {
                "cursors": {"before": None, "after": None if is_last else f"c{start + SIZE}"},
                "limit": 3,
            },
        },
        {},
    )


def _cb_exchange(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return (rows, {} if is_last else {"CB-AFTER": f"c{start + SIZE}", "CB-BEFORE": f"b{start}"})


def _typesense(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query)
    return (
        {
            "found": ROWS,
            "out_of": ROWS,
            "page": number + 1,
            "hits": rows,
            "request_params": {"per_page": 3},
        },
        {},
    )


def _solr(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("start", 0))
    return (
        {
            "responseHeader": {"status": 0},
            "response": {"numFound": ROWS, "start": start, "docs": rows_from(start)},
        },
        {},
    )


def _arcgis(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("resultOffset", 0))
    is_last = start + SIZE >= ROWS
    return (
        {"features": rows_from(start), **({} if is_last else {"exceededTransferLimit": True})},
        {},
    )


def _mediawiki(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "apcontinue")
    return (
        {
            **(
                {}
                if is_last
                else {"continue": {"apcontinue": f"c{start + SIZE}", "continue": "-||"}}
            ),
            "query": {"allpages": rows},
        },
        {},
    )


def _discourse(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query, first=0)
    return (
        {
            "users": [],
            "topic_list": {
                "can_create_topic": True,
                **({} if is_last else {"more_topics_url": f"/discourse?page={number + 1}"}),
                "per_page": 3,
                "topics": rows,
            },
        },
        {},
    )


def _tvdb(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return (
        {
            "links": {"first": 1, "last": 7, "next": None if is_last else number + 2, "prev": None},
            "data": rows,
        },
        {},
    )


def _nyt(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query, first=0)
    return (
        {
            "status": "OK",
            "response": {"docs": rows, "meta": {"hits": ROWS, "offset": number * 3, "time": 1}},
        },
        {},
    )


def _eventbrite(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "continuation")
    page = {
        "object_count": ROWS,
        "page_number": start // 3 + 1,
        "page_size": 3,
        "page_count": 7,
        "has_more_items": not is_last,
    }
    if not is_last:
        page["continuation"] = f"c{start + SIZE}"
    return ({"pagination": page, "events": rows}, {})


def _onelogin2(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return (
        rows,
        {
            "Current-Page": str(start // 3 + 1),
            "Page-Items": "3",
            "Total-Pages": "7",
            "Total-Count": str(ROWS),
            **({} if is_last else {"After-Cursor": f"c{start + SIZE}"}),
        },
    )


def _duo(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("offset", 0))
    is_last = start + SIZE >= ROWS
    return (
        {
            "stat": "OK",
            "response": rows_from(start),
            "metadata": {
                "total_objects": ROWS,
                "prev_offset": None,
                **({} if is_last else {"next_offset": start + SIZE}),
            },
        },
        {},
    )


def _rapid7(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query, first=0)
    return (
        {
            "resources": rows,
            "page": {"number": number, "size": 3, "totalResources": ROWS, "totalPages": 7},
        },
        {},
    )


def _dynatrace(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "nextPageKey")
    return (
        {
            "totalCount": ROWS,
            "pageSize": 3,
            **({} if is_last else {"nextPageKey": f"c{start + SIZE}"}),
            "entities": rows,
        },
        {},
    )


def _vultr(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    return (
        {
            "instances": rows,
            "meta": {
                "total": ROWS,
                "links": {"next": "" if is_last else f"c{start + SIZE}", "prev": ""},
            },
        },
        {},
    )


def _openstack(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "marker")
    return (
        {
            "servers": rows,
            **(
                {}
                if is_last
                else {
                    "servers_links": [
                        {"href": f"{HOST}/openstack?marker=c{start + SIZE}", "rel": "next"}
                    ]
                }
            ),
        },
        {},
    )


def _hellosign(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query)
    return (
        {
            "list_info": {"page": number + 1, "num_pages": 7, "num_results": ROWS, "page_size": 3},
            "data": rows,
        },
        {},
    )


def _clockify(query: Query) -> tuple[Any, dict[str, str]]:
    _number, rows, is_last = numbered_page(query)
    return (rows, {"Last-Page": "true" if is_last else "false"})


def _nexus(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "continuationToken")
    return ({"items": rows, "continuationToken": None if is_last else f"c{start + SIZE}"}, {})


def _adyen(query: Query) -> tuple[Any, dict[str, str]]:
    _number, rows, _is_last = numbered_page(query)
    return ({"itemsTotal": ROWS, "pagesTotal": 7, "data": rows}, {})


def _next_id(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "next_id")
    return ({"data": rows, "next_id": None if is_last else f"c{start + SIZE}"}, {})


def _dynamo(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "ExclusiveStartTableName")
    return (
        {"Records": rows, **({} if is_last else {"LastEvaluatedTableName": f"c{start + SIZE}"})},
        {},
    )


def _datatables(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("iDisplayStart", 0))
    return ({"iTotalRecords": ROWS, "iTotalDisplayRecords": ROWS, "rows": rows_from(start)}, {})


def _datatables2(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("start", 0))
    return (
        {"draw": 1, "recordsTotal": ROWS, "recordsFiltered": ROWS, "data": rows_from(start)},
        {},
    )


def _pagehelper(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query, "pageNum")
    return (
        {
            "total": ROWS,
            "list": rows,
            "pageNum": number + 1,
            "pageSize": 3,
            "pages": 7,
            "hasNextPage": not is_last,
            "isLastPage": is_last,
        },
        {},
    )


def _mybatis(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query, "current")
    return ({"records": rows, "total": ROWS, "size": 3, "current": number + 1, "pages": 7}, {})


def _x_pagination(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query, "pageNumber")
    pages = {"TotalCount": ROWS, "CurrentPage": number + 1, "TotalPages": 7, "HasNext": not is_last}
    return rows, {"X-Pagination": json.dumps(pages)}


def _last_id(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "lastId")
    return ({"data": rows, "lastId": f"c{start + SIZE}", "hasMore": not is_last}, {})


def _strapi(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _is_last = numbered_page(query, "pagination[page]")
    return (
        {
            "data": rows,
            "meta": {
                "pagination": {"page": number + 1, "pageSize": 3, "pageCount": 7, "total": ROWS}
            },
        },
        {},
    )


def _alchemy(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "pageKey")
    return (
        {"data": rows, "totalCount": ROWS, **({} if is_last else {"pageKey": f"c{start + SIZE}"})},
        {},
    )


def _scroll_token(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "scroll_token")
    return ({"data": rows, "scroll_token": None if is_last else f"c{start + SIZE}"}, {})


def _calendar(query: Query) -> tuple[Any, dict[str, str]]:
    assert "syncToken" not in query
    start, rows, is_last = cursor_page(query, "pageToken")
    return (
        {
            "kind": "x",
            "items": rows,
            **({"nextSyncToken": "zz"} if is_last else {"nextPageToken": f"c{start + SIZE}"}),
        },
        {},
    )


def _done_list(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("skip", 0))
    return ({"items": rows_from(start), "done": start + SIZE >= ROWS}, {})


def _servicenow(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("sysparm_offset", 0))
    return ({"result": {"records": rows_from(start)}}, {"X-Total-Count": str(ROWS)})


def _twitter_v1(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "max_id")
    return (
        {
            "data": rows,
            "search_metadata": {
                "count": 3,
                "max_id": 9,
                "next_results": "" if is_last else f"?max_id=c{start + SIZE}",
            },
        },
        {},
    )


def _next_page_zero(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return ({"results": rows, "next_page": 0 if is_last else number + 2}, {})


def _minus_one(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    return ({"items": rows, "nextCursor": "-1" if is_last else f"c{start + SIZE}"}, {})


def _rel_upper(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return (
        {
            "data": rows,
            "Links": [
                {"Rel": "Next", "Href": None if is_last else f"{HOST}/rel_upper?page={number + 2}"}
            ],
        },
        {},
    )


def _cont_uri(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return (
        {
            "value": rows,
            "continuationUri": None if is_last else f"{HOST}/cont_uri?page={number + 2}",
        },
        {},
    )


def _start_from(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("startFrom", 0))
    return (
        {"results": rows_from(start), "numItems": ROWS, "hasMoreItems": start + SIZE < ROWS},
        {},
    )


def _alfresco(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("skipCount", 0))
    return (
        {
            "list": {
                "pagination": {
                    "count": len(rows_from(start)),
                    "hasMoreItems": start + SIZE < ROWS,
                    "totalItems": ROWS,
                    "skipCount": start,
                    "maxItems": 3,
                },
                "entries": rows_from(start),
            }
        },
        {},
    )


ODD_STYLES: dict[str, Style] = {
    "odata_count": Style(_odata_count, "value", {"$skip": "integer", "$top": "integer"}),
    "reddit": Style(
        _reddit,
        "data.children",
        {"after": "string", "limit": "integer", "before": "string", "count": "integer"},
    ),
    "pipedrive": Style(_pipedrive, "data", {"start": "integer", "limit": "integer"}),
    "pipedrive2": Style(_pipedrive2, "data", {"cursor": "string", "limit": "integer"}),
    "zoho": Style(
        _zoho, "data", {"page": "integer", "per_page": "integer", "page_token": "string"}
    ),
    "clickup": Style(_clickup, "tasks", {"page": "integer"}),
    "chargebee": Style(_chargebee, "list", {"offset": "string", "limit": "integer"}),
    "gocardless": Style(
        _gocardless, "payments", {"after": "string", "before": "string", "limit": "integer"}
    ),
    "cb_exchange": Style(
        _cb_exchange, "", {"after": "string", "before": "string", "limit": "integer"}
    ),
    "typesense": Style(
        _typesense, "hits", {"page": "integer", "per_page": "integer", "q": "string"}
    ),
    "solr": Style(_solr, "response.docs", {"start": "integer", "rows": "integer"}),
    "arcgis": Style(
        _arcgis, "features", {"resultOffset": "integer", "resultRecordCount": "integer"}
    ),
    "mediawiki": Style(
        _mediawiki, "query.allpages", {"apcontinue": "string", "aplimit": "integer"}
    ),
    "discourse": Style(_discourse, "topic_list.topics", {"page": "integer"}, True),
    "tvdb": Style(_tvdb, "data", {"page": "integer"}),
    "nyt": Style(_nyt, "response.docs", {"page": "integer"}),
    "eventbrite": Style(_eventbrite, "events", {"continuation": "string", "page": "integer"}),
    "onelogin2": Style(_onelogin2, "", {"after": "string"}),
    "duo": Style(_duo, "response", {"offset": "integer", "limit": "integer"}),
    "rapid7": Style(_rapid7, "resources", {"page": "integer", "size": "integer"}),
    "dynatrace": Style(_dynatrace, "entities", {"nextPageKey": "string", "pageSize": "integer"}),
    "vultr": Style(_vultr, "instances", {"cursor": "string", "per_page": "integer"}),
    "openstack": Style(_openstack, "servers", {"marker": "string", "limit": "integer"}, True),
    "hellosign": Style(_hellosign, "data", {"page": "integer", "page_size": "integer"}),
    "clockify": Style(_clockify, "", {"page": "integer", "page-size": "integer"}),
    "nexus": Style(_nexus, "items", {"continuationToken": "string"}),
    "adyen": Style(_adyen, "data", {"page": "integer", "limit": "integer"}),
    "next_id": Style(_next_id, "data", {"next_id": "string", "limit": "integer"}),
    "dynamo": Style(_dynamo, "Records", {"ExclusiveStartTableName": "string", "Limit": "integer"}),
    "datatables": Style(
        _datatables, "rows", {"iDisplayStart": "integer", "iDisplayLength": "integer"}
    ),
    "datatables2": Style(_datatables2, "data", {"start": "integer", "length": "integer"}),
    "pagehelper": Style(_pagehelper, "list", {"pageNum": "integer", "pageSize": "integer"}),
    "mybatis": Style(_mybatis, "records", {"current": "integer", "size": "integer"}),
    "x_pagination": Style(_x_pagination, "", {"pageNumber": "integer", "pageSize": "integer"}),
    "last_id": Style(_last_id, "data", {"lastId": "string", "limit": "integer"}),
    "strapi": Style(
        _strapi, "data", {"pagination[page]": "integer", "pagination[pageSize]": "integer"}
    ),
    "alchemy": Style(_alchemy, "data", {"pageKey": "string", "limit": "integer"}),
    "scroll_token": Style(_scroll_token, "data", {"scroll_token": "string"}),
    "calendar": Style(_calendar, "items", {"pageToken": "string", "syncToken": "string"}, True),
    "done_list": Style(_done_list, "items", {"skip": "integer", "take": "integer"}),
    "servicenow": Style(
        _servicenow, "result.records", {"sysparm_offset": "integer", "sysparm_limit": "integer"}
    ),
    "twitter_v1": Style(_twitter_v1, "data", {"max_id": "string", "since_id": "string"}, True),
    "next_page_zero": Style(_next_page_zero, "results", {"page": "integer", "per_page": "integer"}),
    "minus_one": Style(_minus_one, "items", {"cursor": "string"}),
    "rel_upper": Style(_rel_upper, "data", {"page": "integer"}, True),
    "cont_uri": Style(_cont_uri, "value", {"page": "integer"}, True),
    "start_from": Style(_start_from, "results", {"startFrom": "integer", "maxItems": "integer"}),
    "alfresco": Style(_alfresco, "list.entries", {"skipCount": "integer", "maxItems": "integer"}),
}
