"""Cases for the tests: one by hand with every part, and a strategy that draws any."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.core.values import (
    Analysis,
    Answer,
    Case,
    ChunkSet,
    Citation,
    Hit,
    Passage,
    Prompt,
    Segment,
    Stamp,
    Step,
    Token,
    inputs_hash,
)

QUESTION = "Why is the sky blue?"
TEXTS = ("Blue light scatters most.", "The sea reflects the sky.")
ANSWER = "Blue light scatters most. [cite_1] It is magic. [cite_7]"


def passage(number: int, text: str) -> Passage:
    return Passage(
        id=f"d{number}@0:0-{len(text)}", document=f"d{number}", title=f"D{number}", ordinal=0, start=0, end=len(text),
        text=text,
    )  # fmt: skip


def attribution(scores=((2.0, -0.05), (1.5, 0.0), (0.0004, 0.3)), **changes) -> dict:
    value = {
        "method": "occlusion",
        "model": "embedded",
        "unit": "nats",
        "spans": [[0, len(ANSWER)], [0, 34], [35, len(ANSWER)]],
        "sources": [[1], [2]],
        "scores": [list(row) for row in scores],
        "per_token": [[0.5, -0.1], [1.5, 0.05]],
        "numerical_floor": 0.001,
        "placebo_floor": 0.1,
        "forwards": 9,
        "seconds": 0.5,
        "notes": [],
        "details": {"token_spans": [[0, 10], [10, 25]]},
    }
    return {**value, **changes}


def full_case(case_id: str = "0123456789ab", **changes) -> Case:
    passages = tuple(passage(i, text) for i, text in enumerate(TEXTS, start=1))
    asked = inputs_hash(QUESTION, passages)
    answered = inputs_hash(QUESTION, passages, ANSWER)
    case = Case(
        id=case_id,
        question=QUESTION,
        passages=passages,
        answer=Answer(
            text=ANSWER,
            tokens=(Token(id=5, start=0, end=4, logprob=-0.25), Token(id=6, start=4, end=10)),
            sentences=((0, 34), (35, len(ANSWER))),
            citations=(
                Citation(start=26, end=34, number=1, valid=True),
                Citation(start=48, end=56, number=7, valid=False),
            ),
            quotes=((0, 1, 0, 10),),
        ),
        stamp=Stamp(model="reader", revision="r1", settings={"k": 3}, versions={"numpy": "2"}, inputs=asked),
        corpus="sky",
        title="A title",
        created="2026-11-20T10:00:00+00:00",
        hits=tuple(Hit(passage=p, score=0.5, parts={"dense": 0.4, "bm25": 3.0}) for p in passages),
        chunk_sets=(ChunkSet(passages=passages[:1], text=TEXTS[0], score=0.75),),
        prompt=Prompt(
            segments=(Segment(kind="passage", text=TEXTS[0], number=1), Segment(kind="question", text=QUESTION))
        ),
        steps=(Step(name="retrieve", seconds=0.01, counts={"passages": 2}),),
        analyses=(
            Analysis(
                id="occlusion:embedded",
                kind="occlusion",
                stamp=Stamp(model="embedded", inputs=answered),
                result=attribution(),
            ),
            Analysis(id="x", kind="never seen", stamp=Stamp(model="m"), result={"a": [1, 2.5, None, {"b": "<i>"}]}),
        ),
        tags=("optics", "two words"),
    )  # fmt: skip
    return Case(**{**{f: getattr(case, f) for f in case.__struct_fields__}, **changes})


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def cases(draw) -> Case:
    texts = draw(st.lists(TEXT, max_size=3))
    passages = tuple(passage(i, text) for i, text in enumerate(texts, start=1))
    question, answer = draw(TEXT), draw(TEXT)
    points = sorted(draw(st.tuples(*[st.integers(0, len(answer))] * 2)))
    analyses = tuple(
        Analysis(
            id=str(i),
            kind=draw(TEXT),
            stamp=Stamp(model=draw(TEXT), inputs=inputs_hash(question, passages, answer)),
            result=draw(st.dictionaries(TEXT, JSON, max_size=3)),
        )
        for i in range(draw(st.integers(0, 2)))
    )
    return Case(
        id=draw(st.text("0123456789abcdef", min_size=12, max_size=12)),
        question=question,
        passages=passages,
        answer=Answer(
            text=answer,
            citations=(Citation(start=points[0], end=points[1], number=1, valid=bool(passages)),),
            tokens=(Token(id=1, start=points[0], end=points[1], logprob=draw(st.none() | st.floats(-9, 0))),),
        ),
        stamp=Stamp(model=draw(TEXT), settings=draw(st.dictionaries(TEXT, JSON, max_size=2))),
        tags=tuple(draw(st.lists(TEXT, max_size=2))),
        hits=tuple(Hit(passage=p, score=draw(st.floats(-9, 9))) for p in passages),
        analyses=analyses,
    )
