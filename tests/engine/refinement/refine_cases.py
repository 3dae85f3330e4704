"""A frozen case, scripted writers that know which condition asks, and stored gradient rows."""

from __future__ import annotations

import numpy as np

from engine.core.values import Answer, Attribution, Case, Details, Passage, Stamp
from engine.methods.refinement.conditions import Request
from engine.models.scripted import ScriptedScorer, ScriptedWriter

QUESTION = "Who built the bridge?"
TEXTS = (
    "Hanna Lind built the bridge in 1874.",
    "The bridge was repaired in 1931 after a flood.",
    "Crystals form when the solution cools.",
)
DRAFT = "Hanna Lind built it in 1874 [cite_1]. She loved trains."
MEMORY = "Nobody knows."


def passages(labels=(None, None, None)):
    return tuple(
        Passage(id=f"p{i}", document=f"d{i}", title="t", ordinal=0, start=0, end=len(t), text=t, relevant=label)
        for i, (t, label) in enumerate(zip(TEXTS, labels, strict=True))
    )


def purpose(asked: str, texts=TEXTS) -> str:
    """Which call a prompt is, told from the prompt as a model would have to; `texts` are those of the passages."""
    if not any(text in asked for text in texts):
        return "B"
    if asked.endswith("Critique:"):
        return "critique"
    if "A reviewer says about your answer" in asked:
        said = asked.rsplit("A reviewer says about your answer:", 1)[1]
        if "Leave out every statement" in said:
            return "v2b"
        if "may not bear on" in said:
            return "v2a"
        if "come from memory" in said:
            return "grounding"
        return "C2" if "Read the passages again and improve" in said else "E"
    return "A"


REPLIES = {
    "A": DRAFT,
    "B": MEMORY,
    "C2": "Hanna Lind built it [cite_1].",
    "critique": "The trains stand in no passage.",
    "E": "Hanna Lind built it in 1874 [cite_1] [cite_2].",
    "grounding": "Hanna Lind built the bridge in 1874 [cite_1].",
    "v2a": "Lind built it [cite_1].",
    "v2b": "Lind [cite_1].",
}


def replies(**changed):
    table = {**REPLIES, **changed}
    return lambda asked: table[purpose(asked)]


def writer(**changed) -> ScriptedWriter:
    return ScriptedWriter(replies(**changed))


def scorer(gain: float = 1.0) -> ScriptedScorer:
    """Writes the same; every token is worth `gain` nats more for each passage that is there."""
    return ScriptedScorer(lambda given, words, t: -9.0 + gain * len(given), replies())


def asked_case(given, question=QUESTION, answer=None, by="", prompt=None) -> Case:
    """A case of these passages; `answer` by `by`, from `prompt`."""
    answer = answer or Answer(text="")
    return Case(id="c", question=question, passages=given, answer=answer, stamp=Stamp(model=by), prompt=prompt)


def request(model=None, labels=(None, None, None), case=None, **changed) -> Request:
    return Request(case or asked_case(passages(labels)), model or writer(), **changed)


def rows(*per_token, scores=None, lengths=(10, 10, 10)) -> Attribution:
    count = len(lengths)
    return Attribution(
        method="input x gradient",
        model="m",
        unit="logit",
        spans=((0, 1),),
        sources=tuple((n,) for n in range(1, count + 1)),
        scores=(tuple(scores or (0.0,) * count),),
        per_token=tuple(map(tuple, per_token)),
        details=Details(lengths=tuple(lengths)),
    )


class NoTrains:
    """A verifier that finds everything in the passages but what speaks of trains."""

    name = "v"

    def judge(self, pairs, watch=None):
        raise AssertionError("not used")

    def entailment(self, pairs, watch=None):
        return np.array([0.0 if "trains" in claim else 1.0 for claim, _ in pairs], dtype=np.float32)
