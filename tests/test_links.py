"""Links of the documents lead somewhere, without a network; `test_site.py` has those of the built site."""

from pathlib import Path

import pytest

from helpers.links import anchors_of, broken_in_document, internal_links, links_of

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT, ROOT / "docs", ROOT / "docs/reference", ROOT / "package/samplers/a2ls")
DOCUMENTS = [file for folder in FOLDERS for file in sorted(folder.glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(document):
    assert broken_in_document(document) == []


def test_documents_have_links_to_check():
    assert {"README.md", "CONTRIBUTING.md", "index.md", "docker.md"} < {file.name for file in DOCUMENTS}
    assert sum(len(links_of(file.read_text())) for file in DOCUMENTS) > 50


TEXT = """# A first `name`

[here](#a-first-name), [`code`](other.md#second-1 "title"), ![picture](<missing.png>),
[out](https://example.org/x), `[no](link)`

```python
x = [0](also_no)
# no heading
```

```{image} drawn.svg
```

<img src="html.png">

[by name]: named.md
"""


def test_what_a_link_is_and_what_a_heading():
    expected = [
        "#a-first-name",
        "other.md#second-1",
        "missing.png",
        "https://example.org/x",
        "html.png",
        "named.md",
        "drawn.svg",
    ]
    assert links_of(TEXT) == expected
    assert anchors_of(TEXT) == {"a-first-name"}
    assert anchors_of("# Same\n## [Same](x.md)\n### Other, too!") == {"same", "same-1", "other-too"}


def test_a_broken_link_of_a_document_is_found(tmp_path):
    (tmp_path / "page.md").write_text(TEXT)
    (tmp_path / "other.md").write_text("# Second\n\n# Second\n")
    (tmp_path / "named.md").write_text("[up](page.md#gone)")
    assert broken_in_document(tmp_path / "page.md") == ["missing.png", "html.png", "drawn.svg"]
    assert broken_in_document(tmp_path / "named.md") == ["page.md#gone"]


def test_a_broken_link_of_a_site_is_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<p id="top"><a href="sub/a.html#x">a</a><a href="#top">b</a><img src="no.png"></p>'
    )
    (tmp_path / "sub/a.html").write_text(
        '<a href="../index.html?q=1#top">a</a><a href="../index.html#end">b</a>'
        '<a href="https://x.y">c</a><a href="..">d</a>'
    )
    broken = {(page, link) for page, link, leads in internal_links(tmp_path) if not leads}
    inner = str(Path("sub/a.html"))
    assert broken == {
        ("index.html", "sub/a.html#x"),
        ("index.html", "no.png"),
        (inner, "../index.html#end"),
        (inner, ".."),
    }
