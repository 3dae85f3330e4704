"""Replay: compute a case again in a process of its own and compare every number with the stored one.

`python -m engine.replay` is that process: a stripped case on standard input, outcomes on standard output.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from engine.analyses.again import check_unchanged, reranked, reranker_of
from engine.analyses.attribution import check_stamped, settings_of
from engine.analyses.floors import embedding_floor, reranking_floor, token_floor
from engine.analyses.imported import KIND as LABELS
from engine.analyses.kind import Floor, Loaders, Outcome
from engine.analyses.reading import answer_again, read_off, stored_answer
from engine.analyses.registry import find
from engine.answer.citations import annotate, style_of
from engine.answer.context import kept_passages
from engine.answer.in_documents import SLOPE, answered_probability
from engine.core.canonical import canonical, plain
from engine.core.errors import Cancelled, CaseError, GroundworkError
from engine.core.files import ROOT, package_versions
from engine.core.progress import Watch
from engine.core.settings import BEST_SENTENCE, Retrieval
from engine.core.values import Analysis, Answer, Case, Hit, Json, Value, decoded, inputs_hash
from engine.models.choices import READER
from engine.models.embedder import DEFAULT
from engine.models.protocols import LanguageModel
from engine.models.server import SERVED
from engine.retrieve.bm25 import unknown_words
from engine.retrieve.search import search

Outcomes = dict[str, Outcome]

# Stored values against recomputed ones, number by number.

Status = Literal["reproduced", "drifted", "cannot"]
_ABSENT = object()


IMPORTED = "the answer was imported, so it is not rewritten"
NOT_COMPUTED = (IMPORTED, LABELS.not_again)  # why an imported part is not compared
NOT_LOOKED_FOR = "none is stored, as in cases of a version that did not look for them, and there are some"
OTHER_MEASURE = "another value is found here; the case does not say which version found this one"
NAMED = 3  # values that a summary names with the reason why they could not be compared


class Number(Value, frozen=True):
    """One stored value: reproduced within the floor, drifted by `difference`, or not comparable and why.

    `place` is a path into the case, such as "analyses[occlusion:embedded].scores[0][2]".
    """

    place: str
    status: Status
    stored: Any = None
    replayed: Any = None
    difference: float | None = None
    floor: float = 0.0
    why: str = ""


class Replay(Value, frozen=True):
    """Every value of a case after its replay. `versions` are packages that differ: (name, stamped, here)."""

    case: str
    numbers: tuple[Number, ...]
    versions: tuple[tuple[str, str, str], ...] = ()

    def count(self, status: Status) -> int:
        """How many values have that status."""
        return sum(number.status == status for number in self.numbers)

    @property
    def holds(self) -> bool:
        """Whether every value that was computed here is reproduced: what was imported cannot be computed again."""
        return all(number.status == "reproduced" or number.why in NOT_COMPUTED for number in self.numbers)

    @property
    def summary(self) -> str:
        """One sentence: how many values came to what, and why some could not be compared."""
        total = len(self.numbers)
        parts = [f"{self.count('reproduced'):,} of {total:,} values reproduced"]
        drifted = [n for n in self.numbers if n.status == "drifted"]
        if drifted:
            worst = max(drifted, key=lambda n: n.difference if n.difference is not None else math.inf)
            parts.append(f"{len(drifted):,} drifted, {worst.place} the most")
        if self.count("cannot"):
            reasons = dict.fromkeys(f"{n.place}: {n.why}" for n in self.numbers if n.status == "cannot")
            listed = [*reasons][:NAMED] + ["and others"] * (len(reasons) > NAMED)
            parts.append(f"{self.count('cannot'):,} could not be compared ({', '.join(listed)})")
        return "; ".join(parts) + "."

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per value with the reason next to its result; what did not reproduce comes first."""
        words: dict[Status, str] = {"drifted": "drifted", "cannot": "not compared", "reproduced": "reproduced"}
        order = list(words)
        return [
            {
                "place": n.place,
                "result": words[n.status],
                "reason": n.why,
                "stored": "" if n.stored is None else str(n.stored),
                "replayed": "" if n.replayed is None else str(n.replayed),
                "difference": n.difference,
                "floor": n.floor,
            }
            for n in sorted(self.numbers, key=lambda n: order.index(n.status))
        ]


def compare(place: str, stored: Any, outcome: Outcome) -> list[Number]:
    """Every leaf of a stored part against the recomputed one."""
    if outcome.values is None:
        return [Number(place=place, status="cannot", why=outcome.why or "nothing was computed")]
    return list(_walk(place, stored, outcome.values, outcome, outcome.floor))


def _as_stored(stored: list[Any], replayed: list[Any]) -> list[Any]:
    """The passages that a check considered in the order of the stored ones, if they are the same.

    Two of nearly one relevance may come in either order, which decides nothing.
    """
    by_passage = {seen.get("passage"): seen for seen in replayed}
    names = [seen.get("passage") for seen in stored]
    same = len(by_passage) == len(replayed) and by_passage.keys() == set(names)
    return [by_passage[name] for name in names] if same else replayed


def _walk(place: str, stored: Any, replayed: Any, outcome: Outcome, floor: Floor) -> Iterator[Number]:
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for key in dict.fromkeys((*stored, *replayed)):
            one, other = stored.get(key, _ABSENT), replayed.get(key, _ABSENT)
            yield from _walk(f"{place}.{key}", one, other, outcome, outcome.floors.get(key, floor))
    elif isinstance(stored, list) and isinstance(replayed, list):
        if len(stored) != len(replayed):
            said = f"it now has {len(replayed)} entries; {len(stored)} were stored"
            yield Number(place=place, status="drifted", why=said)
        if place.endswith(".considered"):
            replayed = _as_stored(stored, replayed)
        for index, (one, other) in enumerate(zip(stored, replayed, strict=False)):
            yield from _walk(f"{place}[{index}]", one, other, outcome, _of_entry(floor, index))
    elif stored is not _ABSENT:
        yield _number(place, stored, replayed, outcome, _of_entry(floor, 0))
    elif replayed not in (None, "", 0, [], {}):
        yield Number(place=place, status="drifted", replayed=replayed, why="it was not stored")


def _of_entry(floor: Floor, index: int) -> float:
    """The floor of an entry of a list; those after the last that was measured have the last one's."""
    return floor[min(index, len(floor) - 1)] if isinstance(floor, tuple) else floor


def _number(place: str, stored: Any, replayed: Any, outcome: Outcome, floor: float) -> Number:
    if replayed is _ABSENT:
        # What a later version no longer computes is named, not passed over.
        return Number(place=place, status="cannot", stored=stored, why=outcome.why or "it is no longer computed")
    found = Number(place=place, status="reproduced", stored=stored, replayed=replayed)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, replayed)):
        if isinstance(stored, int) and isinstance(replayed, int):
            floor = 0.0  # a count or an offset does not round
        difference = abs(replayed - stored)
        status: Status = "reproduced" if difference <= floor else "drifted"
        return replace(found, status=status, difference=difference, floor=floor)
    return found if stored == replayed else replace(found, status="drifted", why="the value differs")


# An answer that a language model wrote: its text is an input, the probabilities of its tokens are computed again.

INPUT = "the answer of {} is an input of the replay and is not rewritten"


def scored_again(case: Case, tools: Loaders) -> Outcome:
    """The tokens' log-probabilities after the prompt that was sent; the text is not compared."""
    why, tokens = INPUT.format(case.stamp.model), case.answer.tokens
    if case.origin == "imported":
        return Outcome(why=IMPORTED)
    if case.prompt is None or not tokens or case.stamp.model.startswith(SERVED):
        return Outcome(why=why)
    model: LanguageModel = tools.writer(case.stamp.model)  # type: ignore[assignment]
    check_stamped(case.stamp, model)
    if not model.can.score:
        return Outcome(why=model.can.why_not or why)
    coded, ids = model.encode(case.prompt), [token.id for token in tokens]
    values = {"logprobs": model.score([coded], ids)[0].tolist()}
    return Outcome(values=values, floor=token_floor(model, [(coded, ids)]), why=why)


def read_again(case: Case) -> Outcomes:
    """Sentences, citations and refusal of an answer that is an input, read off its text again, by their places."""
    if case.origin == "imported":
        found = annotate(case.answer, len(case.passages), style_of(case.answer.text))
    elif case.prompt is not None and case.passages:
        style = settings_of(case.stamp).prompting.citations
        found = annotate(case.answer, max(case.prompt.numbers, default=0), style)
    else:
        return {}  # it broke off, or it is a run of steps, whose passages are those of its steps
    return {f"answer.{name}": Outcome(values=value) for name, value in read_off(found).items()}


# What was retrieved and re-ranked: the search again in the collection as it is now, the re-ranker on the same sets.


def _hit(rank: int, hit: Hit) -> Json:
    passage = hit.passage
    place = {"document": passage.document, "start": passage.start, "end": passage.end}
    return {"rank": rank, "score": hit.score, "parts": hit.parts, "passage": passage.id, **place, "text": passage.text}


def _searched(case: Case) -> bool:
    """Whether the case's passages were found by a search for its question that can be done again."""
    return case.origin != "imported" and case.corpus is not None and "retrieval" in case.stamp.settings


def hits_again(case: Case, tools: Loaders) -> Outcome:
    """The search again, in the collection as it is now: the passages that the case has, then others."""
    settings = case.stamp.settings.get("retrieval")
    if case.corpus is None or settings is None:
        return Outcome(why="the stamp lacks a corpus or retrieval settings")
    collection = tools.collection(case.corpus)
    check_unchanged(collection, (hit.passage.id for hit in case.hits))
    found = {
        hit.passage.id: (rank, hit)
        for rank, hit in enumerate(search(collection, case.question, Retrieval.from_dict(settings)))
    }
    values = [_hit(*found.pop(hit.passage.id)) if hit.passage.id in found else None for hit in case.hits]
    values += [_hit(*more) for more in found.values()]
    texts = [hit.passage.text for hit in case.hits]
    return Outcome(values=plain(values), floor=embedding_floor(collection.embedder, case.question, texts))


def answerable_again(case: Case, tools: Loaders) -> Outcome:
    """The probability that the passages answer, which for an answer from here is of those that the search kept."""
    if "answerable" in case.stamp.settings:
        return Outcome(why="the writer was asked, too, whether the passages answer")
    passages = case.passages
    if case.origin != "imported":
        if not _searched(case):
            return Outcome(why="the stamp lacks a corpus or retrieval settings")
        keep = Retrieval.from_dict(case.stamp.settings["retrieval"]).keep
        passages = kept_passages(case.hits, case.chunk_sets, keep)
    embedder = tools.embedder(case.stamp.revision if _by_reader(case) else DEFAULT)
    texts = [passage.text for passage in passages]
    floor = embedding_floor(embedder, case.question, texts) if texts else 0.0
    return Outcome(values=answered_probability(case.question, passages, embedder), floor=floor * SLOPE / 4)


def unknown_again(case: Case, tools: Loaders) -> Outcome:
    """The words of the question that no document of the collection has, as it is now."""
    if case.stamp.settings["retrieval"].get("mode") == "dense":
        return Outcome(values=[])
    collection = tools.collection(case.corpus or "")
    check_unchanged(collection, (hit.passage.id for hit in case.hits))
    return Outcome(values=plain(unknown_words(case.question, collection.folder, collection.snapshot())))


def sets_again(case: Case, tools: Loaders) -> Outcome:
    """The re-ranker again, on the same sets."""
    values = plain([{"score": chunk_set.score} for chunk_set in reranked(case, tools)])
    texts = [passage.text for s in case.chunk_sets for passage in s.passages]
    name = reranker_of(case)
    if name == BEST_SENTENCE:
        return Outcome(values=values, floor=embedding_floor(tools.embedder(DEFAULT), case.question, texts))
    return Outcome(values=values, floor=reranking_floor(tools.reranker(name), case.question, texts))


def stripped(case: Case) -> Case:
    """The case with its results taken out: scores, token probabilities, analyses, an answer that can be made again.

    What stays is what was asked: question, passages, prompt, stamps, the text that was scored, and what a language
    model wrote.
    """
    kinds = [find(analysis.kind) for analysis in case.analyses]
    if _by_reader(case) and all(kind and not kind.scores_answer for kind in kinds):
        answer = Answer(text="")
    else:
        tokens = tuple(replace(token, logprob=None) for token in case.answer.tokens)
        answer = replace(case.answer, tokens=tokens)
    return replace(
        case,
        answer=answer,
        hits=tuple(replace(hit, score=0.0, parts={}) for hit in case.hits),
        chunk_sets=tuple(replace(s, score=0.0) for s in case.chunk_sets),
        analyses=tuple(replace(analysis, result=_given(analysis)) for analysis in case.analyses),
        steps=(),
        answerable=None if case.answerable is None else 0.0,
        unknown_words=(),
    )


def _by_reader(case: Case) -> bool:
    """Whether the quoting reader wrote the answer here; an imported one may name a model of the same name."""
    return case.origin != "imported" and case.stamp.model == READER


def _given(analysis: Analysis) -> Json:
    kind = find(analysis.kind)
    try:
        given = kind.again.given if kind and kind.again else None
        return plain(given(kind.read(analysis))) if kind and given else {}
    except GroundworkError:
        return {}  # what cannot be read has no inputs; its replay says what is wrong with it


def replay(case: Case, watch: Watch = Watch()) -> Replay:
    """Replay a case in a fresh process; raise `CaseError` if that process fails, `Cancelled` if stopped."""
    return compared(case, _fresh(stripped(case), watch))


def part_names(case: Case) -> dict[str, str]:
    """The parts that a replay computes again, in its order: their places and their names in words."""
    names = {"hits": "search"} if case.hits or _searched(case) else {}
    if case.chunk_sets:
        names["chunk_sets"] = "re-ranking"
    if case.answerable is not None:
        names["answerable"] = "whether the passages answer"
        if _searched(case):
            names["unknown_words"] = "unknown words"
    names["answer"] = "answer"
    for analysis in case.analyses:
        kind, (_, _, by) = find(analysis.kind), analysis.id.partition(":")
        names[f"analyses[{analysis.id}]"] = f"{kind.title if kind else analysis.kind}{by and f' ({by})'}"
    return names


def recompute(case: Case, tools: Loaders, watch: Watch = Watch()) -> Outcomes:
    """The outcome of every part of a stripped case, by its place; `watch` is told the place before it begins."""
    outcomes = {"stamp.inputs": Outcome(values=inputs_hash(case.question, case.passages))}
    if not _by_reader(case):
        outcomes |= read_again(case)
    work: dict[str, Callable[..., Outcome]] = {
        "hits": hits_again,
        "chunk_sets": sets_again,
        "answerable": answerable_again,
        "unknown_words": unknown_again,
        "answer": answer_again if _by_reader(case) else scored_again,
        **{f"analyses[{a.id}]": partial(_analysis, a) for a in case.analyses},
    }
    names = part_names(case)
    for number, (place, name) in enumerate(names.items(), start=1):
        watch.step(name, number, len(names) + 1)  # the comparison comes last
        try:
            outcomes[place] = work[place](case, tools)
        except GroundworkError as error:
            outcomes[place] = Outcome(why=str(error))
    return outcomes


def _analysis(analysis: Analysis, case: Case, tools: Loaders) -> Outcome:
    kind = find(analysis.kind)
    if kind and kind.again:
        return kind.again.run(case, analysis, tools)
    return Outcome(why=(kind.not_again if kind else "") or f"the kind {analysis.kind!r} cannot be replayed yet")


def _stored(analysis: Analysis) -> Any:
    kind = find(analysis.kind)
    return kind.again.compared(analysis.result) if kind and kind.again else analysis.result


def _not_dated(found: Number) -> Number:
    """A probability that differs may be an earlier version's, which a case does not name: no drift is told of it."""
    return replace(found, status="cannot", why=OTHER_MEASURE) if found.status == "drifted" else found


def compared(case: Case, outcomes: Outcomes) -> Replay:
    """The stored values of a case against the outcomes of its replay."""
    logprobs = [token.logprob for token in case.answer.tokens]
    logprobs = logprobs if any(value is not None for value in logprobs) else []
    stored = {
        "stamp.inputs": case.stamp.inputs,
        "hits": plain([_hit(rank, hit) for rank, hit in enumerate(case.hits)]),
        "chunk_sets": plain([{"score": chunk_set.score} for chunk_set in case.chunk_sets]),
        "answer": stored_answer(case.answer)
        if _by_reader(case)
        else plain({"text": case.answer.text, "logprobs": logprobs}),
        **{f"answer.{name}": value for name, value in read_off(case.answer).items()},
        "answerable": case.answerable,
        "unknown_words": plain(case.unknown_words),
        **{f"analyses[{a.id}]": _stored(a) for a in case.analyses},
    }
    if not case.unknown_words and outcomes.get("unknown_words", Outcome()).values:
        outcomes = {**outcomes, "unknown_words": Outcome(why=NOT_LOOKED_FOR)}
    numbers: list[Number] = []
    for place, values in stored.items():
        if place in outcomes:
            found = compare(place, values, outcomes[place])
            numbers += map(_not_dated, found) if place == "answerable" else found
    stamps = (case.stamp, *(analysis.stamp for analysis in case.analyses))
    stamped = dict(item for stamp in stamps for item in stamp.versions.items())
    here = package_versions()
    versions = ((name, version, here.get(name, "absent")) for name, version in sorted(stamped.items()))
    return Replay(case=case.id, numbers=tuple(numbers), versions=tuple(v for v in versions if v[1] != v[2]))


MARK = b"replaying "  # begins a line of the process that says which part it computes


class ReplayPart(NamedTuple):
    """Where a replay is: the name of the part, its number from 1, how many parts there are."""

    name: str = "starting"
    number: int = 0
    total: int = 0


def _fresh(case: Case, watch: Watch) -> Outcomes:
    # The input comes from a file: a pipe that the process is slow to read would have to be fed while waiting.
    with tempfile.TemporaryFile() as given:
        given.write(canonical(case))
        given.seek(0)
        command = [sys.executable, "-m", "engine.replay"]
        process = subprocess.Popen(command, cwd=ROOT, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        place, since = ReplayPart(), time.monotonic()
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=0.3)
                    break
                except subprocess.TimeoutExpired as waited:
                    now = _last_part(waited.output or b"")
                if now != place:
                    place, since = now, time.monotonic()
                _report(watch, place, time.monotonic() - since)
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise CaseError(f"The replay stopped early ({last or process.returncode}). Nothing was changed.")
    return decoded(out.rpartition(b"\n")[2], Outcomes)


def _last_part(out: bytes) -> ReplayPart:
    """The part that the process said last.

    >>> _last_part(b'\\nreplaying ["search",1,3]\\nreplaying ["answer",2,3]\\nreplay')
    ReplayPart(name='answer', number=2, total=3)
    """
    said = re.findall(rb"^%b(.*)\n" % MARK, out, re.MULTILINE)
    return decoded(said[-1], ReplayPart) if said else ReplayPart()


def _report(watch: Watch, place: ReplayPart, seconds: float) -> None:
    """Tell the part and how long it has taken, which moves also within a long part; raise `Cancelled` if asked to."""
    name, number, total = place
    watch.report(f"{name}, {seconds:.0f} s" + (", part" if total else ""), number, total)
    if watch.cancel.is_set():
        raise Cancelled("The replay was stopped. Nothing was changed.")


def _tell(*place: Any) -> None:
    sys.stdout.buffer.write(b"\n" + MARK + canonical(place) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """The process of its own."""
    case = Case.from_dict(msgspec.json.decode(sys.stdin.buffer.read()))
    # Libraries print to standard output now and then; the last line is ours.
    sys.stdout.buffer.write(b"\n" + canonical(recompute(case, Loaders(), Watch(report=_tell))))


if __name__ == "__main__":
    main()
