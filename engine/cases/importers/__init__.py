"""Answers from elsewhere as cases: own JSONL, and the public layouts of ALCE, GaRAGe and RAGTruth."""

from engine.cases.importers.layouts import LAYOUTS, detect, read_cases

__all__ = ["LAYOUTS", "detect", "read_cases"]
