"""S1, S2, S3: is the answer grounded in the passages (grounded refinement, section 3.2, as METHODS section 2 fixes it).

S1 = ROUGE-L F1 of the answers with and without passages (grounded: low). S2 = mean over A's tokens of
log p(token | prompt) - log p(token | the same prompt, passage segments dropped) (grounded: high). S3 = share of A's
content words found in any passage (grounded: high): string matching, no attribution; it cannot see a detail made up
inside a well-cited sentence. The paper gave S2 up for token counts that did not match; here the answer's ids are the
same in both rows by construction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from engine.answer.citations import content_token_mask, find_citations
from engine.metrics import rouge_l
from engine.models.protocols import LanguageModel
from engine.progress import Watch
from engine.refine.values import Threshold, Word
from engine.settings import Refinement
from engine.text import content_words
from engine.types import Answer, Passage, Prompt


def s1(with_passages: str, without: str) -> float:
    """ROUGE-L F1 of the two answers' texts, in [0, 1]."""
    return rouge_l(without, with_passages)


def s2(model: LanguageModel, prompt: Prompt, answer: Answer, watch: Watch | None = None) -> tuple[float, float | None]:
    """Mean gain (nats a token) that the passages give: over all tokens, and over those outside citation markers.

    `answer` carries the model's token ids, at least one. Two rows are scored. The second figure is None where every
    token is a marker's.
    """
    coded = model.encode(prompt)
    rows = model.score([coded, coded.without(set(prompt.numbers))], [t.id for t in answer.tokens], watch)
    gains = rows[0] - rows[1]
    content = gains[np.asarray(content_token_mask(answer), dtype=bool)]
    return float(gains.mean()), float(content.mean()) if content.size else None


def overlap_words(answer: str, passages: Sequence[Passage]) -> tuple[Word, ...]:
    """The content words of the answer with their characters, and whether a passage has them.

    >>> cup = Passage(id="p", document="d", title="", ordinal=0, start=0, end=22, text="2 spoons, added; a cup")
    >>> [(w.start, w.end, w.found) for w in overlap_words("Add two cups.", [cup])]
    [(0, 3, False), (4, 7, True), (8, 12, False)]
    """
    known = {word for passage in passages for word in content_words(passage.text)}
    found = []
    for match in re.finditer(r"\S+", _blanked(answer)):
        bare = re.search(r"[^\W_](?:.*[^\W_])?", match.group(), re.DOTALL)
        words = content_words(match.group())
        if bare is not None and words:
            start = match.start() + bare.start()
            found.append(Word(start=start, end=match.start() + bare.end(), found=words[0] in known))
    return tuple(found)


def _blanked(text: str) -> str:
    """The text with citation markers of both styles blanked, so that offsets stay."""
    for citation in (*find_citations(text, 0, "garage"), *find_citations(text, 0, "alce")):
        text = text[: citation.start] + " " * (citation.end - citation.start) + text[citation.end :]
    return text


def s3(words: Sequence[Word]) -> float | None:
    """Share of the words that were found, in [0, 1]; None for an answer without content words."""
    return sum(word.found for word in words) / len(words) if words else None


def overlap_threshold(history: Sequence[float], settings: Refinement | None = None) -> Threshold:
    """S3 under which D fires: the 40th percentile over `history`, or 0.75 until there are 20 cases.

    `history` is S3 over the loaded question set, or over the library's cases by the same model.
    """
    settings = settings or Refinement()
    if len(history) < settings.overlap_cases:
        rule = f"fixed until there are {settings.overlap_cases} cases by the same model"
        return Threshold(value=settings.overlap_threshold, rule=rule, n=len(history))
    value = float(np.percentile(np.asarray(history, dtype=np.float64), settings.overlap_percentile))
    rule = f"{settings.overlap_percentile:.0f}th percentile of S3"
    return Threshold(value=value, rule=rule, n=len(history))
