"""The report for an auditor: one HTML file, or Markdown."""

from engine.report.build import facts_report, html_report, markdown_report

__all__ = ["facts_report", "html_report", "markdown_report"]
