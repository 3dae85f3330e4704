"""The report for an auditor: one HTML file, or Markdown."""

from engine.report.build import html_report, markdown_report

__all__ = ["html_report", "markdown_report"]
