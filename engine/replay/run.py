"""Run a replay: strip the case, compute its parts again in a process of its own, compare.

`python -m engine.replay.run` is that process: a stripped case on standard input, outcomes on standard output.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from engine.analyses.kind import Again, Json, Loaders, Outcome
from engine.analyses.reading import READER, answer_again, stored_answer
from engine.analyses.registry import find
from engine.core.canonical import canonical
from engine.core.errors import CaseError, GroundworkError
from engine.core.progress import Watch
from engine.core.values import Analysis, Answer, Case, decoded
from engine.replay.compare import (
    Number,
    Replay,
    compare,
    differing_versions,
)
from engine.replay.retrieval import (
    hits_again,
    inputs_again,
    sets_again,
    stored_hits,
    stored_inputs,
    stored_sets,
)
from engine.replay.written import scored_again, stored_text

ROOT = Path(__file__).resolve().parents[2]
Outcomes = dict[str, Outcome]


def again_of(analysis: Analysis) -> Again | None:
    """How an analysis is computed again; None for a kind that has no replay."""
    kind = find(analysis.kind)
    return kind.again if kind else None


def unreplayable(analysis: Analysis) -> str:
    """Why an analysis of a kind without replay is not compared."""
    kind = find(analysis.kind)
    return kind.not_again if kind and kind.not_again else f"there is no replay of the kind {analysis.kind!r} yet"


def stripped(case: Case) -> Case:
    """The case with its results taken out: scores, token probabilities, analyses, an answer that can be made again.

    What stays is what was asked: question, passages, prompt, stamps, the text that was scored, and what a language
    model wrote.
    """
    if case.stamp.model == READER and not any(map(_scores_the_answer, case.analyses)):
        answer = Answer(text="")
    else:
        tokens = tuple(msgspec.structs.replace(token, logprob=None) for token in case.answer.tokens)
        answer = msgspec.structs.replace(case.answer, tokens=tokens)
    return msgspec.structs.replace(
        case,
        answer=answer,
        hits=tuple(msgspec.structs.replace(hit, score=0.0, parts={}) for hit in case.hits),
        chunk_sets=tuple(msgspec.structs.replace(s, score=0.0) for s in case.chunk_sets),
        analyses=tuple(msgspec.structs.replace(analysis, result=_given(analysis)) for analysis in case.analyses),
        steps=(),
    )


def _scores_the_answer(analysis: Analysis) -> bool:
    kind = find(analysis.kind)
    return kind is None or kind.scores_answer


def _given(analysis: Analysis) -> Json:
    again = again_of(analysis)
    try:
        return again.given(analysis.result) if again else {}
    except GroundworkError:
        return {}  # what cannot be read has no inputs; its replay says what is wrong with it


def replay(case: Case, watch: Watch | None = None) -> Replay:
    """Replay a case in a fresh process; raise `CaseError` if that process fails, `Cancelled` if stopped."""
    return compared(case, _fresh(stripped(case), watch or Watch()))


def replay_here(case: Case, tools: Loaders | None = None) -> Replay:
    """Replay a case in this process, with models and collections of the caller's."""
    return compared(case, recompute(stripped(case), tools or Loaders()))


def recompute(case: Case, tools: Loaders) -> Outcomes:
    """The outcome of every part of a stripped case, by its place."""
    outcomes = {"stamp.inputs": _tried(lambda: inputs_again(case, tools))}
    if case.hits:
        outcomes["hits"] = _tried(lambda: hits_again(case, tools))
    if case.chunk_sets:
        outcomes["chunk_sets"] = _tried(lambda: sets_again(case, tools))
    outcomes["answer"] = _answer(case, tools)
    for analysis in case.analyses:
        outcomes[f"analyses[{analysis.id}]"] = _tried(lambda a=analysis: _analysis(case, a, tools))  # type: ignore[misc]
    return outcomes


def _analysis(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    again = again_of(analysis)
    return again.run(case, analysis, tools) if again else Outcome(why=unreplayable(analysis))


def _stored(analysis: Analysis) -> Any:
    again = again_of(analysis)
    return again.compared(analysis.result) if again else analysis.result


def _answer(case: Case, tools: Loaders) -> Outcome:
    again = answer_again if case.stamp.model == READER else scored_again
    return _tried(lambda: again(case, tools))


def _tried(work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except GroundworkError as error:
        return Outcome(why=str(error))


def compared(case: Case, outcomes: Outcomes) -> Replay:
    """The stored values of a case against the outcomes of its replay."""
    stored = {
        "stamp.inputs": stored_inputs(case),
        "hits": stored_hits(case),
        "chunk_sets": stored_sets(case),
        "answer": stored_answer(case) if case.stamp.model == READER else stored_text(case),
        **{f"analyses[{a.id}]": _stored(a) for a in case.analyses},
    }
    numbers: list[Number] = []
    for place, values in stored.items():
        if place in outcomes:
            numbers += compare(place, values, outcomes[place])
    versions = {**case.stamp.versions}
    for analysis in case.analyses:
        versions.update(analysis.stamp.versions)
    return Replay(case=case.id, numbers=tuple(numbers), versions=differing_versions(versions))


def _fresh(case: Case, watch: Watch) -> Outcomes:
    started = time.monotonic()
    # The input comes from a file: a pipe that the process is slow to read would have to be fed while waiting.
    with tempfile.TemporaryFile() as given:
        given.write(canonical(case))
        given.seek(0)
        command = [sys.executable, "-m", "engine.replay.run"]
        process = subprocess.Popen(command, cwd=ROOT, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = _wait(process, lambda: watch.step("replay", int(time.monotonic() - started)))
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise CaseError(f"The replay stopped before its end ({last or process.returncode}). Nothing was changed.")
    return decoded(out.rpartition(b"\n")[2], Outcomes)


def _wait(process: subprocess.Popen[bytes], tick: Callable[[], None]) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=0.3)
        except subprocess.TimeoutExpired:
            tick()


def main() -> None:
    """The process of its own."""
    case = Case.from_dict(msgspec.json.decode(sys.stdin.buffer.read()))
    # Libraries print to standard output now and then; the last line is ours.
    sys.stdout.buffer.write(b"\n" + canonical(recompute(case, Loaders())))


if __name__ == "__main__":
    main()
