"""What public APIs call the fields and parameters of their pages, less what is no letter. Pure."""

from __future__ import annotations

import re
from typing import Final

TOKEN: Final = re.compile(
    r"[a-z]*(?:token|cursor|marker)|page|offset|start|after|startingafter|key|pagekey|id"
)
"""What the parameter of a page is called, less what is no letter."""
LATER: Final = re.compile(r"next(?:sync|delta|change|poll)[a-z]*")
"""Tokens of Google's and others that ask, at a later time, for what has changed since."""
NO_TOKENS: Final = frozenset({"", "0", "-1", "null", "none", "nil", "undefined"})
"""What replaces a token where there is no next page."""
MORE: Final = (
    "istruncated", "truncated", "hasmore", "hasmoreresults", "hasmoreitems", "hasmorepages",
    "hasnextpage", "hasnext", "more", "moreresults", "moreavailable", "morerecords",
    "moreitemsincollection", "exceededtransferlimit", "hasmorerecords", "hasmoredata",
)  # fmt: skip
MORE_OF: Final = re.compile(
    r"(?:has|is|are)?more(?!info|details)[a-z]*|[a-z]*(?:truncated|exceeded[a-z]*limit)"
    r"|hasnext[a-z]*|next[a-z]*(?:exists|available)|(?:is)?(?:incomplete|partial)[a-z]*"
)
"""Flags of a list: true says that more exists, false says nothing."""
DONE: Final = ("done", "isdone", "complete", "iscomplete", "finished", "isfinished", "exhausted")
"""Flags of a list: false says that more exists, true says nothing."""
LAST: Final = ("islast", "islastpage", "lastpage", "last", "isfinal", "endoflist")
ENVELOPES: Final = (
    "resultinfo", "pagination", "paging", "pager", "pageinfo", "pagedetails", "meta", "metadata",
    "responsemetadata", "links", "link", "cursors", "cursor", "page", "pages", "next", "nextpage",
    "info", "additionaldata",
)  # fmt: skip
ENVELOPE: Final = re.compile(
    r"[a-z]*(?:pagination|paging|pageinfo|pager|links|cursors|metadata|listinfo)"
)
"""Objects beside the rows that hold what others have there themselves, also one in another."""
ADDRESSES: Final = (
    "next", "nextlink", "nexturl", "nexturi", "nexthref", "nextpage", "nextpageurl", "nextpageuri",
    "nextpagelink", "nextpagehref", "nextrecordsurl", "nextresultsurl", "odatanextlink",
    "nextresults",
)  # fmt: skip
ADDRESS: Final = re.compile(r"(?:more[a-z]*|continuation)(?:url|uri|link|href)")
PARAMETERS: Final = ("continue", "nextparams", "nextpageparams", "nextparameters", "nextquery")
"""Objects with the parameters of the next page by their names."""
TOKENS: Final = (
    "next", "nextcursor", "cursor", "after", "nexttoken", "pagetoken", "continuationtoken",
    "continuation", "paginationtoken", "startingtoken", "startingafter", "marker", "bookmark",
    "scrollid", "position", "startcursor", "pagecursor", "pageafter", "paginationcursor",
)  # fmt: skip
"""Parameters that take a token, whatever its field is called, if the method has one of them."""
PAGES: Final = (
    "page",
    "pagenumber",
    "pageno",
    "currentpage",
    "pageindex",
    "number",
    "p",
    "pagenum",
    "current",
)
PAGERS: Final = (
    "page", "pagenumber", "pageno", "currentpage", "pageindex", "p", "pagenum", "current",
    "paginationpage",
)  # fmt: skip
"""The parameters that take the number of a page."""
LAST_PAGES: Final = (
    "totalpages", "pages", "pagecount", "lastpage", "totalpagecount", "pagetotal", "nbpages",
    "numpages", "pagestotal",
)  # fmt: skip
OFFSETS: Final = (
    "offset", "pageoffset", "startat", "startindex", "skip", "firstresult", "startposition",
    "start", "from", "resultoffset", "idisplaystart", "paginationstart", "paginationoffset",
    "sysparmoffset", "skipcount", "startfrom",
)  # fmt: skip
MAYBE_TIMES: Final = ("start", "from")
"""Parameters that are an offset only if they are whole numbers."""
SIZES: Final = (
    "limit", "pagelimit", "perpage", "pagesize", "maxresults", "itemsperpage", "size", "count",
    "top", "resultsperpage", "pagecount", "rows", "take",
    "resultrecordcount", "idisplaylength", "length", "paginationpagesize", "paginationlimit",
    "sysparmlimit", "maxitems",
)  # fmt: skip
TOTALS: Final = (
    "totalcount", "totalresults", "totalitems", "totalsize", "totalrecords", "totalelements",
    "totalentries", "totalobjects", "totalsetsize", "itemstotal", "numfound", "odatacount",
    "recordsfiltered", "itotaldisplayrecords", "recordstotal", "itotalrecords", "numresults",
    "total", "count", "totalhits", "hits", "found",
)  # fmt: skip
LEFT: Final = ("remainingitemcount", "remainingcount", "remainingitems", "nextrange")
"""What is left of the list, in a body or a header."""
ECHOED: Final = (
    "cursor", "offset", "bookmark", "scrollid", "continue", "after", "aftercursor", "scrolltoken",
    "pagekey", "pagetoken", "paginationtoken", "pagingtoken", "continuationtoken", "continuation",
)  # fmt: skip
"""Parameters whose own name is the field of the next page's token at some providers."""
AFTERS: Final = ("after", "cursor", "pageafter", "pagecursor")
CERTAIN_TOTALS: Final = 17
"""How many of them count a list wherever they are."""
