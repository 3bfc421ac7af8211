"""Text extraction by media type, with broken and hostile files."""

import asyncio
import base64
import io
import sys
import time
import zipfile
import zlib
from pathlib import Path
from uuid import UUID

import pytest
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.knowledge_bases import parser_process
from switchboard.resources.knowledge_bases.chunking import split_passages
from switchboard.resources.knowledge_bases.extraction import extract_text
from switchboard.resources.knowledge_bases.formats import DOCX, PDF
from switchboard.resources.knowledge_bases.html_text import extract_html_text

from tests.fixtures.virtual_clock import CLOCK

ORGANIZATION = UUID(int=1)

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def create_docx(document: str, *, name: str = "word/document.xml", styles: str = "") -> str:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, document)
        if styles:
            archive.writestr("word/styles.xml", styles)
    return encode(file.getvalue())


def create_paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def create_style(style_id: str, name: str, properties: str = "", *, based_on: str = "Standard") -> str:
    return (
        f'<w:style w:type="paragraph" w:styleId="{style_id}"><w:name w:val="{name}"/><w:basedOn w:val="{based_on}"/>'
        f"<w:pPr>{properties}</w:pPr></w:style>"
    )


def create_pdf(*pages: str, content: bytes | None = None, filters: str = "") -> bytes:
    """Build a PDF file of pages with lines of text."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
        stream = content if content is not None else f"BT /F1 12 Tf 72 720 Td {lines} ET".encode()
        objects.append(f"<< /Length {len(stream)} {filters} >>\nstream\n".encode() + stream + b"\nendstream")
        objects.append(
            (
                f"<< /Type /Page /Parent 2 0 R /Contents {len(objects)} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
            ).encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} /MediaBox [0 0 612 792] >>".encode()
    file, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(file))
        file += f"{number} 0 obj\n".encode() + one + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF"
    return file + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("name,note\nZed,late\n", "text/csv", "name: Zed; note: late"),
        ('{"name": "Zed"}', "application/json", "name: Zed"),
        ("Zed", "text/plain", "Zed"),
    ],
)
async def test_a_byte_order_mark_is_removed(content: str, content_type: str, text: str) -> None:
    assert (await extract_text(ORGANIZATION, "file", f"\ufeff{content}", content_type)).text == text


async def read_refusal(content: str, content_type: str) -> str:
    with pytest.raises(ValidationFailed) as refused:
        await extract_text(ORGANIZATION, "file", content, content_type)
    (fault,) = refused.value.errors
    assert fault["field"] == "content"
    return fault["message"]


@pytest.mark.parametrize(
    ("filename", "content", "expected"),
    [
        ("a.txt", "one\r\ntwo\r", "one\ntwo"),
        ("a", "# stays", "# stays"),
        ("a.md", "# Title\n\n<!-- not for\nreaders -->\ntext", "# Title\n\n\ntext"),
        (
            "a.CSV",
            "name;price\nRye, dark;4\n;\nOat;3;new",
            "name: Rye, dark; price: 4\n\nname: Oat; price: 3; column 3: new",
        ),
        ("a.csv", '"a","b"\n"x ""y""","line\nbreak"', 'a: x "y"; b: line\nbreak'),
        (
            "a.json",
            '{"hours": {"monday": ["7-12", "13-18"]}, "open": true, "note": null}',
            "hours monday: 7-12\nhours monday: 13-18\n\nopen: yes",
        ),
        ("a.json", '[{"name": "Rye", "price": 4.5}, {"name": "Oat"}]', "name: Rye\nprice: 4.5\n\nname: Oat"),
        ("a.json", '"just text"', "just text"),
    ],
)
async def test_text_is_extracted_by_media_type(filename: str, content: str, expected: str) -> None:
    assert (await extract_text(ORGANIZATION, filename, content, None)).text == expected


async def test_html_is_extracted_as_rendered() -> None:
    page = """<!doctype html><html><head><title>x</title><style>p {color: red}</style><script>alert("x")</script></head>
    <body><nav><a href="/">Home</a></nav><h2>Opening &amp; closing</h2><p>From <b>seven</b>\n to six.</p>
    <ul><li>not on Sundays<li>nor holidays</ul>
<table><tr><th>Loaf</th><th>Price</th></tr><tr><td>Rye</td><td>4&nbsp;$</td></tr></table>
    <img alt="A map of the town"><p>a<br>b<script>while(1){}</p></script></body>"""
    text = (await extract_text(ORGANIZATION, "a.html", page, None)).text
    assert text.startswith("## Opening & closing\n\nFrom seven to six.\n\n- not on Sundays\n- nor holidays")
    assert "Loaf | Price" in text
    assert "Rye | 4" in text
    assert "A map of the town" in text
    assert "a\nb" in text
    for hidden in ("alert", "color", "while", "Home"):
        assert hidden not in text


async def test_malformed_html_is_still_extracted() -> None:
    for page in (
        "<head><title>t</title><style>p {}</style><body><p>kept",
        "<head><p>kept",
        "<p>kept<",
        "<b>" * 20_000 + "kept",
        "<p>kept</div></p></p><!--",
        "<table><td>kept",
    ):
        assert "kept" in (await extract_text(ORGANIZATION, "a.html", page, "text/html")).text


async def test_pdf_files_are_extracted() -> None:
    extracted = await extract_text(
        ORGANIZATION, "a.pdf", encode(create_pdf("Opening hours: from\nseven to six.", "Second page.")), None
    )
    assert extracted.text == "Opening hours: from seven to six.\n\nSecond page."
    assert extracted.content_type == PDF
    assert extracted.size == len(create_pdf("Opening hours: from\nseven to six.", "Second page."))


async def test_docx_files_are_extracted() -> None:
    body = (
        create_paragraph("Bakery", '<w:pStyle w:val="Title"/>')
        + create_paragraph("Hours", '<w:pStyle w:val="Heading2"/>')
        + create_paragraph("Seven to six.")
        + create_paragraph("not on Sundays", "<w:numPr/>")
        + create_paragraph(" ")
        + "<w:p><w:r><w:t>Rye</w:t></w:r><w:r><w:tab/><w:t>bread</w:t><w:delText>gone</w:delText></w:r></w:p>"
    )
    extracted = await extract_text(
        ORGANIZATION, "a.docx", create_docx(f"<w:document {WORD}><w:body>{body}</w:body></w:document>"), None
    )
    assert extracted.text == "# Bakery\n\n## Hours\n\nSeven to six.\n\n- not on Sundays\n\nRye bread"
    assert extracted.content_type == DOCX


async def test_headings_and_lists_of_docx_files_are_known_by_their_styles_in_every_language() -> None:
    numbered = '<w:numPr><w:numId w:val="3"/></w:numPr>'
    styles = f"""<w:styles {WORD}>
    {create_style("Titel", "Title")} {create_style("berschrift1", "heading 1")}
    {create_style("Kapitel", "Überschrift 1", '<w:outlineLvl w:val="0"/>' + numbered)}
    {create_style("Abschnitt", "Mein Abschnitt", '<w:outlineLvl w:val="1"/>', based_on="Kapitel")}
    {create_style("Inhalt", "TOC Heading", '<w:outlineLvl w:val="9"/>', based_on="berschrift1")}
    {create_style("Aufzhlung", "List Bullet", numbered)} {create_style("Kreis", "Kreis", based_on="Kreis")}
    </w:styles>"""
    paragraphs = {
        "Bäckerei": '<w:pStyle w:val="Titel"/>',
        "Zeiten": '<w:pStyle w:val="berschrift1"/>',
        "Brot": '<w:pStyle w:val="Kapitel"/>',
        "Roggen": '<w:pStyle w:val="Abschnitt"/><w:pPrChange><w:pPr><w:pStyle w:val="Titel"/></w:pPr></w:pPrChange>',
        "Preise": '<w:pStyle w:val="Kreis"/><w:outlineLvl w:val="2"/>',
        "Inhalt": '<w:pStyle w:val="Inhalt"/>',
        "Hafer": '<w:pStyle w:val="Aufzhlung"/>',
        "Ende": '<w:pStyle w:val="Aufzhlung"/><w:numPr><w:numId w:val="0"/></w:numPr>',
    }
    body = "".join(create_paragraph(text, properties) for text, properties in paragraphs.items())
    document = create_docx(f"<w:document {WORD}><w:body>{body}</w:body></w:document>", styles=styles)
    assert (await extract_text(ORGANIZATION, "a.docx", document, None)).text.split("\n\n") == [
        "# Bäckerei", "# Zeiten", "# Brot", "## Roggen", "### Preise", "Inhalt", "- Hafer", "Ende",
    ]  # fmt: skip


async def test_tables_and_text_boxes_of_docx_files_keep_together() -> None:
    def create_row(*cells: str) -> str:
        return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"

    nested = f"<w:tbl>{create_row(create_paragraph('small'), create_paragraph('3'))}</w:tbl>"
    rows = (
        create_row(create_paragraph("Loaf"), create_paragraph("Note"), create_paragraph("Price"))
        + create_row(create_paragraph("Rye") + create_paragraph("dark"), create_paragraph(" "), create_paragraph("4"))
        + create_row(create_paragraph("Oat"), nested)
        + create_row(create_paragraph(" "))
    )
    box = f"<w:txbxContent>{create_paragraph('In a box')}</w:txbxContent>"
    compatibility = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f"{create_paragraph('Above')}<w:tbl>{rows}</w:tbl><w:p><w:r><w:t>Around </w:t></w:r>"
        f'<m:AlternateContent xmlns:m="{compatibility}"><m:Choice>{box}</m:Choice><m:Fallback>{box}</m:Fallback>'
        "</m:AlternateContent><w:r><w:t>555</w:t><w:noBreakHyphen/><w:t>0100</w:t></w:r></w:p>"
    )
    for namespace in (WORD, 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'):
        document = create_docx(f"<w:document {namespace}><w:body>{body}</w:body></w:document>")
        assert (await extract_text(ORGANIZATION, "a.docx", document, None)).text == (
            "Above\n\nLoaf | Note | Price\nRye dark |  | 4\nOat | small | 3\n\nIn a box\n\nAround 555-0100"
        )


async def test_characters_that_the_database_refuses_are_removed() -> None:
    assert (await extract_text(ORGANIZATION, "a.json", '["a\\u0000b \\ud800"]', None)).text == "ab ?"


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("text/markdown", "<!--" * 500_000 + "x"),
        ("text/html", "x<!" * 100_000),
        ("text/plain", "a " * 2_000_000),
        ("text/plain", "." * 4_000_000),
        ("text/plain", "#" * 4_000_000),
        ("text/markdown", "# a\n" * 200_000),
    ],
    ids=["comments", "declarations", "one sentence", "full stops", "marks", "headings"],
)
async def test_adversarial_files_take_seconds_at_most(content_type: str, content: str) -> None:
    started_at = time.perf_counter()
    extracted = await extract_text(ORGANIZATION, "file", content, content_type)
    assert split_passages(extracted.text)
    assert time.perf_counter() - started_at < 20


async def test_the_parser_gets_none_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that takes the parser over must not find the keys there."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec /usr/bin/env\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    for name in ("SWITCHBOARD_SECRET_KEYS", "SWITCHBOARD_DATABASE_URL", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a secret")
    seen = await parser_process.parse_file(ORGANIZATION, "html", b"")
    assert "PYTHONPATH=" in seen
    assert "secret" not in seen.lower()


async def test_extraction_times_out() -> None:
    reading = asyncio.create_task(read_refusal("<p>text", "text/html"))
    while not reading.done():
        await asyncio.sleep(0)
        CLOCK.advance(1)
    assert "takes longer than 60 seconds" in await reading


async def test_repeated_names_do_not_grow_without_limit() -> None:
    name = "n" * 90
    message = await read_refusal(f'{{"{name}": [{",".join("1" * 400_000)}]}}', "application/json")
    assert "more than 10 million characters" in message
    assert "more than 10 million characters" in await read_refusal(f"{name}\n" + "1\n" * 400_000, "text/csv")
    assert len((await extract_text(ORGANIZATION, "a.json", f'{{"{"k" * 5000}": 1}}', None)).text) < 200


async def test_base64_may_contain_line_breaks() -> None:
    lines = base64.encodebytes(create_pdf("text")).decode()
    assert (await extract_text(ORGANIZATION, "a.pdf", lines, None)).text == "text"


@pytest.mark.parametrize(
    ("content_type", "content", "message"),
    [
        ("application/json", '{"a": 1', "is not readable JSON"),
        ("application/json", "[" * 100_000, "nested too deeply"),
        ("application/json", "[" * 100 + "1" + "]" * 100, "deeper than 64"),
        ("application/json", "9" * 5000, "number too long"),
        ("application/json", "[]", "contains no text"),
        ("text/html", "<script>x</script>", "contains no text"),
        ("text/csv", "\n;\n", "contains no text"),
        (PDF, encode(b"no pdf"), "is not a readable PDF file"),
        (PDF, encode(create_pdf("")), "scanned pages are not read"),
        (PDF, "???", "base64"),
        (DOCX, encode(b"no zip"), "is not a readable DOCX file"),
        (DOCX, create_docx("<w:document>", name="other.xml"), "is not a readable DOCX file"),
        (DOCX, create_docx("<not closed"), "is not a readable DOCX file"),
        (DOCX, create_docx(f"<w:document {WORD}/>"), "contains no text"),
    ],
)
async def test_unreadable_files_are_refused_with_a_message(content_type: str, content: str, message: str) -> None:
    assert message in await read_refusal(content, content_type)


async def test_xml_entity_attacks_are_refused() -> None:
    laughs = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))
    for declared in (f'<!ENTITY l0 "lol">{laughs}', '<!ENTITY l9 SYSTEM "file:///etc/passwd">'):
        document = f"<!DOCTYPE d [{declared}]><w:document {WORD}>{create_paragraph('&l9;')}</w:document>"
        assert "declares a document type" in await read_refusal(create_docx(document), DOCX)
        styles = document.replace("w:document", "w:styles")
        assert "declares a document type" in await read_refusal(create_docx("<not read>", styles=styles), DOCX)


async def test_decompression_bombs_are_refused() -> None:
    assert "unpacks to more than 64 MiB" in await read_refusal(
        create_docx(f"<w:document {WORD}>" + " " * (65 * 1024**2)), DOCX
    )
    styles = f"<w:styles {WORD}>" + " " * (65 * 1024**2)
    assert "unpacks to more than 64 MiB" in await read_refusal(create_docx("<not read>", styles=styles), DOCX)
    bomb = zlib.compress(b"BT (x) Tj ET " + b" " * (100 * 1024**2))
    message = await read_refusal(encode(create_pdf("x", content=bomb, filters="/Filter /FlateDecode")), PDF)
    assert "PDF" in message or "memory" in message


@pytest.mark.parametrize("piece", ["<", "<!--", "<a ", "<![", "</", "<b>", "<a href='", "<select>", "<b><p></b>"])
def test_a_page_is_read_in_linear_time(piece: str) -> None:
    def measure(size: int) -> float:
        page = f"<p>kept</p>{piece * (size // len(piece))}".encode()
        began = time.thread_time()
        assert extract_html_text(page).startswith("kept")
        return time.thread_time() - began

    # Eight times the page takes eight times as long. A quadratic reader would take 64 times.
    assert measure(2_000_000) < 24 * max(measure(250_000), 0.005)


async def test_one_organizations_slow_files_do_not_keep_another_waiting() -> None:
    slow = "<b>" * 200_000
    reads = [asyncio.create_task(extract_text(ORGANIZATION, "a.html", f"{slow}{n}", None)) for n in range(6)]
    assert (await extract_text(UUID(int=2), "b.html", "<p>short", None)).text == "short"
    assert sum(read.done() for read in reads) <= 2
    await asyncio.gather(*reads)
