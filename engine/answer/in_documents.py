"""Is it in the documents: the probability that some passages answer a question, before anything is written.

The closest sentence decides, with the headings above it: its cosine to the question plus half its share of the
question's content words (`closeness` of sentence_scores.py), turned into a probability by a logistic curve. Its two
parameters were fitted on 80 XQuAD questions, every other one without its paragraph, and 130 CLAP NQ questions whose
page answers or does not.
AUROC 0.942 on 300 questions of XQuAD and 0.871 on all 600 of CLAP NQ, expected calibration error 0.04 and 0.03
(`bench/in_documents.py`). It says whether something close is there, not whether an answer is right. A writer that is
asked too (`answered` of write.py) tells more: the mean of both log odds has AUROC 0.938 on XQuAD, the writer alone
0.934, the closest sentence alone 0.915 (n = 200 with the gold paragraph and 200 without).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from engine.answer.citations import without_markers
from engine.answer.sentence_scores import Candidate, score_sentences
from engine.core.settings import Retrieval
from engine.core.values import Case, Passage
from engine.models.protocols import Embedder

SLOPE = 10.6  # per unit of closeness
MIDDLE = 0.807  # closeness at which it is as likely as not
EVEN = 0.5  # probability under which it is doubtful: 0.80 of CLAP NQ's unanswerable questions, 0.22 of the others

NAME = 4  # words of a name before a question


def answered_probability(question: str, passages: Sequence[Passage], embedder: Embedder) -> float:
    """In [0, 1]; 0 without a sentence."""
    return probability(score_sentences(question, passages, embedder))


def probability(candidates: Sequence[Candidate]) -> float:
    """The same from sentences that are scored already; headings say what a section is on and answer nothing.

    >>> probability([])
    0.0
    """
    closest = max((c.closeness for c in candidates if not c.heading), default=None)
    return 0.0 if closest is None else 1 / (1 + math.exp(SLOPE * (MIDDLE - closest)))


def together(*probabilities: float) -> float:
    """The probability whose log odds are the mean of theirs; each is first moved to 1e-4 from 0 and 1.

    >>> round(together(0.5, 0.9), 6)
    0.75
    """
    kept = [min(max(p, 1e-4), 1 - 1e-4) for p in probabilities]
    mean = sum(math.log(p / (1 - p)) for p in kept) / len(kept)
    return 1 / (1 + math.exp(-mean))


def nothing_said(case: Case) -> str:
    """The warning that a writer wrote nothing or gave the question back, as small ones do; else empty.

    An imported answer or one that is not finished may be empty without a word of a model. A name may precede
    the question: "T. Roe: What do pupils want?"
    """
    said, asked = (re.findall(r"\w+", text.lower()) for text in (without_markers(case.answer.text), case.question))
    again = "Ask again with the quoting reader or a larger model."
    if not case.answer.text.strip():
        by_model = case.origin == "generated" and case.answer.finished
        return f"The model wrote nothing. {again}" if by_model else ""
    if not said or said[-len(asked) :] != asked or len(said) > len(asked) + NAME:
        return ""
    return f"The answer only repeats the question. {again}"


def may_not_answer(case: Case) -> bool:
    """Is it in doubt that the documents answer the question."""
    return case.answerable is not None and case.answerable < EVEN and not case.answer.refused


def probably_answered(case: Case) -> str:
    """Whether the documents, or an audit's sources, answer the question, in a sentence; empty for a refusal."""
    if case.answerable is None or case.answer.refused:
        return ""
    how = "may not answer" if may_not_answer(case) else "probably answer"
    read = "sources" if case.origin == "imported" else "documents"
    return f"The {read} {how} the question (probability that they do: {case.answerable:.2f})."


def unknown(case: Case) -> str:
    """The mistyped words of the question; in doubt whether the documents answer it, all that none of them has.

    A part of a longer word, as "CO2" of "co2_ppm", is not unknown where a passage of the case has it.
    """
    if case.answerable is None:
        return ""
    read = " ".join(passage.text for passage in case.passages).lower()
    words = [(word, other) for word, other in case.unknown_words if word.lower() not in read]
    near = [f"No document has “{word}”; the nearest word is “{other}”." for word, other in words if other]
    far = [f"“{word}”" for word, other in words if not other and case.answerable < EVEN]
    listed = " or ".join(filter(None, (", ".join(far[:-1]), *far[-1:])))
    return " ".join([*near, *([f"No document has {listed}."] if far else [])])


def doubted(case: Case, settings: Retrieval) -> str:
    """The warning that the documents do not seem to answer the case's question; empty where they may.

    All 50 questions of `bench.asked` that share no word with their answer get it (docs/trust.md): hence its advice.
    Empty in an audit too: the answer was not written here, and whether it is borne out is told by its facts.
    """
    if case.answerable is None or case.answerable >= settings.doubt_under or case.origin == "imported":
        return ""
    best = max((hit.score for hit in case.hits), default=None)
    scored = "" if best is None else f", best passage score {best:.2f}"
    said = f"probability that they do: {case.answerable:.2f}{scored}"
    asked = "answerable" in case.stamp.settings
    refused = " Set “Refuse below this probability” to 0 to see what the writer would say." if asked else ""
    used = " If they have other words for it, ask in those. The answer uses the closest passages."
    closest = refused if case.answer.refused else used
    place = f" of “{case.corpus}”" if case.corpus else ""
    which = "chosen documents" if case.searched else "documents"
    said = f"The {which}{place} do not seem to answer this question ({said}).{closest}"
    return f"{said} {unknown(case)}".strip()
