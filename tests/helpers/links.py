"""Links of Markdown documents and of a built site, and those of them that lead nowhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FENCED = re.compile(r"^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2[`~]*$", re.MULTILINE | re.DOTALL)
_LINKS = re.compile(
    r"\]\(<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]: (\S+)|<(?:a|img)\b[^>]*\b(?:href|src)=\"([^\"]+)\"", re.MULTILINE
)
_FILES_OF_DIRECTIVES = re.compile(r"^ *`{3,}\{(?:image|figure|include|literalinclude)\} (\S+)", re.MULTILINE)


def links_of(text):
    """All links of a Markdown text, and the files that its directives show; what stands in code is none."""
    prose = re.sub(r"`[^`\n]+`", "", _FENCED.sub("", text))
    links = [next(filter(None, found)) for found in _LINKS.findall(prose)]
    return [*links, *_FILES_OF_DIRECTIVES.findall(text)]


def anchors_of(text):
    """What a link into a Markdown text can name after the #: its headings, the second of a name with -1, and so on."""
    anchors, seen = set(), {}
    for heading in re.findall(r"^#+ (.+?) *$", _FENCED.sub("", text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = seen[anchor] = seen.get(anchor, -1) + 1
        anchors.add(f"{anchor}-{number}" if number else anchor)
    return anchors


def broken_in_document(document):
    """The links of a Markdown file that lead to no file, or to no heading of one."""
    return [link for link in links_of(document.read_text()) if not _leads_from(document, link)]


def _leads_from(document, link):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    file = document.parent / unquote(parts.path) if parts.path else document
    if not file.exists():
        return False
    return not parts.fragment or file.suffix != ".md" or unquote(parts.fragment) in anchors_of(file.read_text())


class _Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = {name: value for name, value in attrs if value}
        self.links += [named[name] for name in ("href", "src") if name in named]
        self.anchors |= {named[name] for name in ("id", "name") if name in named and (name == "id" or tag == "a")}


def internal_links(site):
    """All links of a built site to itself, as (page, link, whether it leads to a file and to an anchor in it)."""
    pages = {page.resolve(): _Page(page.read_text()) for page in Path(site).rglob("*.html")}
    found = []
    for page, content in pages.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            leads = file.is_file() and (not anchor or file not in pages or anchor in pages[file].anchors)
            found.append((str(page.relative_to(Path(site).resolve())), link, leads))
    return found
