"""Looking at a collection loads no embedder: a page that only shows documents stays quick."""

from __future__ import annotations

import subprocess
import sys

from engine.core.values import Document
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder


def test_reading_a_collection_imports_neither_torch_nor_sentence_transformers():
    document = Document(id="a.txt", title="A", text="Ice melts.", source="a.txt", media_type="text/plain")
    Collection.create("c", ScriptedEmbedder()).add([document])
    code = (
        "import sys\nfrom engine.corpus.collection import Collection\n"
        "assert len(Collection.open('c').snapshot().documents) == 1\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'sentence_transformers', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_first_start_answers_before_the_embedder_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "fresh"))
    code = (
        "import sys\nfrom engine.workbench import Workbench\nbench = Workbench()\nbench.prepare_first()\n"
        "assert bench.cases.load('sample-acetaminophen').answer.finished\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'sentence_transformers', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
