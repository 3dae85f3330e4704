"""The kinds of analyses that attribute an answer, as a case stores them."""

from __future__ import annotations

OCCLUSION = "occlusion"
SETS = "occlusion of chunk sets"
SENTENCES = "occlusion of sentences"
TOKEN_MAP = "token map"
FAITHFULNESS = "faithfulness"
USED_SUPPORTS = "used x supports"
DROPS = "attr-rag drops"  # asked for by this name; what it finds is added to the case's Attr-RAG run
