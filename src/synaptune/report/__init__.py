"""Reports: tables, drawings and plain sentences from result files, as one HTML file, Markdown or plain text.

Reads files only; it knows no method and no model. `build_report` gives a value, which the other functions show.
"""

from synaptune.report.building import build_report
from synaptune.report.document import Report
from synaptune.report.finding import Finding
from synaptune.report.html.page import to_html, write_html
from synaptune.report.markdown import to_markdown
from synaptune.report.table import Table

__all__ = ["Finding", "Report", "Table", "build_report", "to_html", "to_markdown", "write_html"]
