"""XML from strangers."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.xml_documents import read_document
from tidegate.xml_tree import MOST_BYTES


def test_elements_are_found_by_their_path_whatever_their_namespace() -> None:
    text = '<p xmlns="urn:x" xmlns:y="urn:y"><a><b> 1 </b></a><y:a><b>2</b></y:a></p>'
    root = read_document(text.encode(), "It")
    assert [each.text.strip() for each in root.all("a", "b")] == ["1", "2"]
    assert root.value("a", "b") == "1"
    assert root.value("a", "c") == ""


def test_the_encoding_that_the_document_names_is_read() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><p><a>é</a></p>'
    assert read_document(text.encode("latin-1"), "It").value("a") == "é"


BILLION = (
    '<!DOCTYPE p [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;">]><p>&c;</p>'
)
EXTERNAL = '<!DOCTYPE p [<!ENTITY a SYSTEM "file:///etc/passwd">]><p>&a;</p>'
ELSEWHERE = '<!DOCTYPE p SYSTEM "http://127.0.0.1:1/x.dtd"><p/>'


@pytest.mark.parametrize("text", [BILLION, EXTERNAL, ELSEWHERE, "<!DOCTYPE html><html></html>"])
def test_a_document_type_is_refused(text: str) -> None:
    with pytest.raises(TidegateError, match="document type") as caught:
        read_document(text.encode(), "It")
    assert caught.value.code is Code.DRIVER_UNRESOLVED


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no element found"),
        (b"<p>", "no element found"),
        (b"<p>&nbsp;</p>", "undefined entity"),
        (b"not xml", "syntax error"),
        (b'<?xml version="1.0" encoding="x-unknown"?><p/>', "encoding"),
        (b"<a>" * 65 + b"</a>" * 65, "nested more than 64 deep"),
        (b"<a>" + b" " * MOST_BYTES + b"</a>", "more than"),
        (b"<a>\xff\xfe</a>", "invalid"),
    ],
)
def test_what_is_no_xml_is_an_error_that_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(TidegateError, match=f"It cannot be read: .*{reason}"):
        read_document(content, "It")
