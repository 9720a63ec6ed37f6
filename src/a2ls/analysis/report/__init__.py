"""A search as one HTML page that needs neither network nor server.

>>> page = search_report(read_dataset("runs/my-search"))
>>> Path("report.html").write_text(page_html(page))
"""

from a2ls.analysis.report._page import Page, Section, Table, page_html, verbatim
from a2ls.analysis.report._search_report import search_report

__all__ = [
    "Page",
    "Section",
    "Table",
    "page_html",
    "search_report",
    "verbatim",
]
