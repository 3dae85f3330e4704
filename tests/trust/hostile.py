"""A data folder in which every text is an attack: documents, a case with every analysis, review marks, tags."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from engine.analyses.facts import KIND as FACTS, FactsOptions
from engine.analyses.kind import STEPS, Loaders, RunContext, analyse
from engine.analyses.registry import kind_named
from engine.cases.review import MarkDraft
from engine.core.settings import Settings
from engine.core.values import AuditRecord, Case, GivenPassage
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder
from engine.models.huggingface import HuggingFaceModel
from engine.models.scripted import ScriptedWriter
from engine.workbench import Workbench
from tests.analysing import analysed, keep, refined
from tests.engine.are.scripted import WordVerifier
from tests.tiny import TURNS, tiny_config, tiny_tokenizer
from tests.trust.attacks import ALL, FORMULAS, LINE, LONG_LINE, TEXTS

CORPUS = "hostile"
NAMES = ("![cat](http://attack.invalid/name.png).md", "=cmd()|<img src=x onerror=window.attacked=1>.txt")
SETTINGS = Settings().apply(["reasoning.threshold=0", "faithfulness.steps=2", "faithfulness.rankings=2"])


def attack_files() -> dict[str, bytes]:
    """Name to bytes of documents in every format, each full of attacks."""
    from docx import Document

    docx, buffer = Document(), io.BytesIO()
    docx.core_properties.title = LINE[:200]
    for text in TEXTS.values():
        docx.add_paragraph("".join(c for c in text if c.isprintable()))
    docx.save(buffer)
    page = (
        f"<html><head><title>{LINE}</title></head><body><p>{'A long paragraph of a page. ' * 20}</p>{ALL}</body></html>"
    )
    rows = "\n".join(f'"{LINE.replace(chr(34), chr(34) * 2)}","{f.replace(chr(34), chr(34) * 2)}"' for f in FORMULAS)
    records = [{"_id": text[:60], "title": text, "text": text} for text in (*TEXTS.values(), *FORMULAS)]
    return {
        NAMES[0]: ALL.encode(),
        NAMES[1]: ALL.encode("utf-8"),
        "page.html": page.encode(),
        "rows.csv": f"title,text\n{rows}\n".encode(),
        "records.jsonl": "\n".join(map(json.dumps, records)).encode(),
        "paper.docx": buffer.getvalue(),
        "line.txt": LONG_LINE.encode(),
    }


def ingest_attacks(folder: Path) -> Collection:
    """The attack files as the corpus `hostile` of the data folder that is in force."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "attacks.zip", "w") as archive:
        for name, data in attack_files().items():
            archive.writestr(name, data)
    report = Workbench().ingest([folder / "attacks.zip"], CORPUS)
    assert [name for name, _ in report.skipped] == [f"attacks.zip/{NAMES[0]}"]
    return Collection.open(CORPUS)


def hostile_case(bench: Workbench, models: Path) -> Case:
    """A case whose question, passages, answer, model, marks and tags are attacks, with every analysis on it."""
    long = tiny_long(models / "tiny-hostile")
    chosen = [TEXTS[name] for name in ("html, handlers", "html, overlay", "markdown, image")]
    passages = tuple(GivenPassage(text=text, title=LINE) for text in chosen)
    answer = f"{LINE} [cite_1] {TEXTS['latex, link']} [cite_2] {TEXTS['injection, injection']} [cite_9]"
    record = AuditRecord(question=LINE, passages=passages, answer=answer, model=LINE, id=LINE)
    case = bench.audit(record)
    bench.cases.update(case.id, lambda saved: msgspec.structs.replace(saved, corpus=CORPUS))
    bench.cases.set_tags(case.id, (LINE, FORMULAS[0]))
    for method in ("occlusion", "token map", "faithfulness"):
        bench.analyse(case.id, method, kind_named(method).options(model=str(long)))
    _reasoned(bench, case.id, long)
    for draft in _drafts():
        bench.cases.add_mark(case.id, draft)
    return bench.cases.load(case.id)


def _reasoned(bench: Workbench, case_id: str, scorer: Path) -> None:
    """Facts, refinement and steps by writers that reply with attacks."""
    writer = ScriptedWriter(lambda asked: f"{LINE} | {LINE}\n{LINE} | {LINE}", name=LINE)
    case, store = bench.cases.load(case_id), bench.cases
    tools = Loaders(embedder=lambda name: ScriptedEmbedder(), verifier=lambda name: WordVerifier())
    settings = bench.settings.apply(["verification.evidence_from=case"])
    analyse(store, case_id, FACTS, FactsOptions(), RunContext(settings, tools))
    wanted = ("A", "B", "C1", "C2", "D", "E", "v2a", "v2b", "v2c")
    loaded = HuggingFaceModel.load(scorer)
    refined(store, case_id, writer, bench.settings, variants=wanted, scorer=loaded)
    for method in ("raise", "hyde"):
        found = analysed(case, STEPS, writer, bench.settings, collection=Collection.open(CORPUS), method=method)
        keep(store, case_id, found)


def _drafts() -> tuple[MarkDraft, ...]:
    return (
        MarkDraft(kind="note", author=LINE, value=LINE),
        MarkDraft(kind="relevance", author=LINE, value="relevant", target="passage:1", reason=LINE),
        MarkDraft(kind="override", author=LINE, value=LINE, target="fact:0", reason=LINE, machine=LINE),
        MarkDraft(kind="status", author=LINE, value="in review"),
    )


def long_case(bench: Workbench) -> Case:
    """A case with one line of a megabyte as question's neighbour, passage and answer."""
    record = AuditRecord(question="W" * 1_500, passages=(LONG_LINE,), answer=LONG_LINE, model="W" * 500)
    return bench.audit(record)


def tiny_long(folder: Path, **tokens: Any) -> Path:
    """A random model whose window takes the attacks whole; `tokens` go to `tiny_tokenizer`."""
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = tiny_tokenizer(template=TURNS, **tokens)
    config = tiny_config("llama", len(tokenizer))
    config.max_position_embeddings = 16_384
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
