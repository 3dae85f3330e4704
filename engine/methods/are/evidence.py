"""Evidence for a fact (ARE, section 4.2): search, re-rank by relevance to the fact, keep the best; the rest is shown.

Sources are the case's own passages ("faithful to what it was given") and a collection ("supported elsewhere"), kept
apart. Similarity is the cosine of the embedder's vectors; of a case passage the closest sentence counts where it is
closer than the whole. The most similar passages are put in the order of their relevance, of which similarity is one
part (`engine.retrieve.relevance`), or in ARE's, by similarity alone. Left out: web search, ARE's cross-encoder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from engine.answer.citations import find_citations, style_of
from engine.core.progress import Watch
from engine.core.settings import Retrieval, SearchMode, Verification
from engine.core.text import content_words, sentences, unwrapped
from engine.core.values import Hit, Passage
from engine.corpus.collection import Collection
from engine.methods.are.values import Clause, Evidence, Exchange
from engine.methods.are.verdict import asked
from engine.models.embedder import embed_passages
from engine.models.protocols import Embedder, Entailment, Writer
from engine.models.replies import lines
from engine.prompts import ask
from engine.retrieve.relevance import relevance_of, word_shares
from engine.retrieve.search import search_many

MOST_CITED = 9_999  # the highest number that a citation may have


@dataclass(frozen=True)
class Sources:
    """Where evidence may come from: `case`, its passages in citation order; `collection`, searched as `mode` says.

    `documents` of the collection alone are searched, all of them if empty.
    """

    embedder: Embedder
    case: tuple[Passage, ...] = ()
    collection: Collection | None = None
    mode: SearchMode = "hybrid"
    documents: tuple[str, ...] = ()

    def chosen(self, settings: Verification) -> Sources:
        """The sources that `evidence_from` names."""
        if settings.evidence_from == "corpus":
            return dataclasses.replace(self, case=())
        return dataclasses.replace(self, collection=None) if settings.evidence_from == "case" else self


def cited_numbers(answer: str, clause: Clause) -> frozenset[int]:
    """The passages that a clause cites, by number; a number that no passage has does no harm."""
    found = find_citations(clause.text, MOST_CITED, style_of(answer))
    return frozenset(citation.number for citation in found if citation.valid)


def find_evidence(
    facts: Sequence[str],
    queries: Sequence[Sequence[str]],
    sources: Sources,
    settings: Verification,
    watch: Watch = Watch(),
    cited: Sequence[frozenset[int]] = (),
    verifier: Entailment | None = None,
) -> list[tuple[Evidence, ...]]:
    """For each fact what `queries[i]` found, the case's passages first, each source as `settings.rank_by` says.

    At most `settings.passages` a source, the most similar ones, and with `settings.anchored` the case passages that
    `cited` names for the fact; a passage of the case is not offered again as one of the corpus. The `verifier` reads
    the sentence of each passage that holds most of the fact.
    """
    watch.step("search", 0, len(facts))
    named = cited if cited and settings.anchored else [frozenset[int]()] * len(facts)
    found = _case_evidence(facts, queries, sources, settings.passages, named)
    if sources.collection is not None:
        how = Retrieval(k=settings.passages, mode=sources.mode, documents=sources.documents)
        searched = _searched(facts, queries, sources.collection, how, watch)
        held = {_words(passage.text) for passage in sources.case}
        found = [
            (
                *(replace(e, in_corpus=_words(e.text) in {_words(other.text) for other in theirs}) for e in mine),
                *(e for e in theirs if _words(e.text) not in held),
            )
            for mine, theirs in zip(found, searched, strict=True)
        ]
    if settings.rank_by == "relevance":
        found = _with_relevance(facts, found, verifier, watch)
    else:
        found = [tuple(replace(one, relevance=max(one.score, 0.0)) for one in seen) for seen in found]
    return [tuple(sorted(seen, key=lambda one: (one.source != "case", -one.relevance))) for seen in found]


def _with_relevance(
    facts: Sequence[str], found: Sequence[tuple[Evidence, ...]], verifier: Entailment | None, watch: Watch
) -> list[tuple[Evidence, ...]]:
    """The evidence of each fact with its relevance.

    A passage is as relevant as its sentence with most of the fact's words, with the passage's own similarity.
    """
    closest = [[_closest(fact, one.text) for one in seen] for fact, seen in zip(facts, found, strict=True)]
    verdicts: Iterator[float] | None = None
    if verifier is not None:
        pairs = [(fact, text) for fact, texts in zip(facts, closest, strict=True) for text in texts]
        verdicts = iter([1 - judged.scores["irrelevant"] for judged in verifier.judge(pairs, watch)])
    result = []
    for fact, seen, texts in zip(facts, found, closest, strict=True):
        bearing = [next(verdicts) for _ in texts] if verdicts is not None else None
        scores = relevance_of([one.score for one in seen], word_shares(fact, texts), bearing)
        result.append(tuple(replace(one, relevance=round(r, 4)) for one, r in zip(seen, scores, strict=True)))
    return result


def _closest(fact: str, text: str) -> str:
    parts = [text[start:end] for start, end in sentences(text)] or [text]
    return max(zip(word_shares(fact, parts), parts, strict=True), key=lambda one: one[0])[1]


def _words(text: str) -> str:
    return " ".join(text.split())


def _case_evidence(
    facts: Sequence[str], queries: Sequence[Sequence[str]], sources: Sources, most: int, cited: Sequence[frozenset[int]]
) -> list[tuple[Evidence, ...]]:
    """Of the case's passages what the queries of each fact found and what it cites, by similarity to the fact."""
    if not sources.case or not facts:
        return [() for _ in facts]
    asked = list(dict.fromkeys([*facts, *(query for some in queries for query in some)]))
    parts = [[p.text, *(p.text[a:b] for a, b in sentences(p.text))] for p in sources.case]
    starts = np.cumsum([0, *(len(texts) for texts in parts[:-1])])
    similar = sources.embedder.embed(asked) @ sources.embedder.embed([text for texts in parts for text in texts]).T
    closest = np.maximum.reduceat(similar, starts, axis=1)  # (queries, passages): a passage or its closest sentence
    best = dict(zip(asked, closest, strict=True))
    result = []
    for fact, some, named in zip(facts, queries, cited, strict=True):
        found = [{int(i) for i in np.argsort(-best[query], kind="stable")[:most]} for query in some]
        pooled = sorted(set().union(*found), key=lambda i: (-best[fact][i], i))[:most]
        cites = (number - 1 for number in named if 0 < number <= len(sources.case))
        order = sorted({*pooled, *cites}, key=lambda i: (-best[fact][i], i))
        result.append(tuple(_evidence(sources.case[i], float(best[fact][i]), i, found, i + 1) for i in order))
    return result


def _evidence(
    passage: Passage, score: float, key: object, found: Sequence[Container[object]], number: int | None = None
) -> Evidence:
    """The passage as evidence; `found` are the results of each query, in which its `key` may be."""
    return Evidence(
        text=unwrapped(passage.text),
        source="case" if number else "corpus",
        passage=passage.id,
        document=passage.document,
        title=passage.heading,
        speaker=passage.speaker,
        number=number,
        score=round(score, 4),
        found_by=tuple(place for place, some in enumerate(found) if key in some),
    )


def _searched(
    facts: Sequence[str], queries: Sequence[Sequence[str]], collection: Collection, how: Retrieval, watch: Watch
) -> list[tuple[Evidence, ...]]:
    """The results of the searches for each fact, once each, by similarity to the fact."""
    flat = [query for asked in queries for query in asked]
    hits = iter(search_many(collection, flat, how))
    each = [[{hit.passage.id: hit for hit in next(hits)} for _ in asked] for asked in queries]
    watch.step("re-rank", 0, len(facts))
    return [
        _reranked(fact, found, asked, collection, how.k)
        for fact, found, asked in zip(facts, each, queries, strict=True)
    ]


def _reranked(
    fact: str, found: Sequence[dict[str, Hit]], asked: Sequence[str], collection: Collection, most: int
) -> tuple[Evidence, ...]:
    """The hits of each query by their similarity to the fact; a search with the fact alone has computed it already."""
    hits = list({name: hit for some in found for name, hit in some.items()}.values())
    if not hits:
        return ()
    if tuple(asked) == (fact,) and all("dense" in hit.parts for hit in hits):
        scores = [hit.parts["dense"] for hit in hits]
    else:
        vectors = embed_passages(collection.embedder, [hit.passage.text for hit in hits])
        scores = (vectors @ collection.embedder.embed([fact])[0]).tolist()
    order = sorted(range(len(hits)), key=lambda i: -scores[i])[:most]
    return tuple(_evidence(hits[i].passage, scores[i], hits[i].passage.id, found) for i in order)


# Fact expansion (ARE, section 4.3, appendices A.3 and B): two search phrases for a fact that nothing settled.
#
# They are queries only: the fact itself is verified against what they find, and no expansion enters the answer. What
# each phrase found is kept on the evidence. By a language model, or by rules: the fact's names and numbers, and its
# content words beside the question's.

_NAME = re.compile(r"\b[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*|\d[\d,.]*\d|\d")


def expanded_by_rules(fact: str, question: str, context: str = "", *, row_words: bool = True) -> tuple[str, str]:
    """(names and numbers of the fact with its clause's, content words of fact and question).

    With `row_words` a fact without a name, as of a table's row, is searched by its words, too, not by numbers alone.

    >>> expanded_by_rules("Ada Berg won in 1990", "Who won the cup?")
    ('Ada Berg 1990', 'ada berg won 1990 cup')
    >>> expanded_by_rules("The pumps used 126 in Cork and 31 at night", "How much?")[0]
    'The 126 Cork 31'
    >>> expanded_by_rules("The pumps used 126 by day and 31 at night", "How much?")[0]
    'The 126 31 pumps used day night'
    """
    names = dict.fromkeys(match.group() for match in _NAME.finditer(f"{fact} {context}"))
    if row_words and names and not any(name[0].isalpha() and content_words(name) for name in names):
        names |= dict.fromkeys(content_words(fact))
    words = dict.fromkeys([*content_words(fact), *content_words(question)])
    return " ".join(names) or fact, " ".join(words) or fact


def expand(
    fact: str,
    question: str,
    writer: Writer | None = None,
    context: str = "",
    watch: Watch = Watch(),
    *,
    row_words: bool = True,
) -> tuple[tuple[str, ...], Exchange | None]:
    """Two queries for a fact, and the exchange with the language model if one was asked."""
    by_rules = expanded_by_rules(fact, question, context, row_words=row_words)
    if writer is None:
        return by_rules, None

    def two_phrases(reply: str) -> tuple[str, ...] | None:
        return tuple(said[:2]) if len(said := lines(reply)) > 1 else None

    phrases, exchange = asked("expand", ask("expand", fact=fact), writer, 80, two_phrases, watch)
    return phrases or by_rules, exchange
