"""Make the bundled worked example, one case with every analysis but the steps, and the solved example, a run of RAISE.

    GROUNDWORK_HOME=$(mktemp -d) python -m bench.worked_example [--writer qwen2.5-coder-1.5b] [--solved | --checked]

writes them again (after a change of the bundled models). The reader quotes the answer and the embedded model scores it.
`--writer` writes the second passes and solves the problem (`--solved`: this alone). `--checked` checks the worked
example and the second pass that fails again and leaves the rest (after a change of the verifier). Qwen was given two
problems and solved one, which is the one here. Each number carries the stamp of its run, and replay scores it again as
in any other case.
"""

from __future__ import annotations

import argparse
import gzip
import sys

from msgspec.structs import replace

from engine.analyses.kind import FACTS, FAITHFULNESS, OCCLUSION, REFINEMENT, STEPS, TOKEN_MAP, USED_SUPPORTS
from engine.analyses.refinement import RefinementOptions, facts_of
from engine.analyses.steps import StepsOptions, new_case
from engine.analyses.token_map import MapRows, TokenMap
from engine.answer.in_documents import answered_probability
from engine.cases.bundled import EXAMPLE, SELF_REFINED, SOLVED, file_of, take_in
from engine.cases.case_file import write_case_file
from engine.core.files import now
from engine.core.settings import Settings
from engine.core.values import Analysis, Case
from engine.methods.raise_.threshold import PRIMER, primer
from engine.methods.raise_.values import Problem
from engine.methods.refinement.run import RefinementReport, assessed
from engine.workbench import Workbench

QUESTION = "How is crude acetaminophen recrystallized, and how are the crystals dried?"
CORPUS = "bench-chemistry"
ATTRIBUTIONS = (OCCLUSION, TOKEN_MAP, FAITHFULNESS, USED_SUPPORTS)
CONDITIONS = ("A", "B", "D")
WRITER = "qwen2.5-coder-1.5b"
PROBLEM = "q-physics-22"
SETTINGS = {"faithfulness.rankings": 5}  # few random rankings: enough to show, a quarter of the cost


def make(bench: Workbench, writer: str) -> Case:
    """Ask and run every analysis; `writer` is a model's name."""
    bench.ask(QUESTION, CORPUS, method="attr-rag", case_id=EXAMPLE)
    for kind in (*ATTRIBUTIONS, FACTS):
        bench.analyse(EXAMPLE, kind)
    draw_map(bench)
    scorer = bench.tools.scorer().name
    wanted = RefinementOptions(model=writer, variants=CONDITIONS, gate="always", use_answer=True, scorer=scorer)
    bench.analyse(EXAMPLE, REFINEMENT, wanted)
    return bench.cases.update(EXAMPLE, lambda saved: replace(saved, tags=("worked example",)))


def check(bench: Workbench, case_id: str) -> Case:
    """A bundled case as it is, with what the verifier says, and whether the passages answer, made anew."""
    take_in(bench.cases, case_id)
    stored = [analysis.kind for analysis in bench.cases.load(case_id).analyses]
    again = (*(kind for kind in stored if kind == USED_SUPPORTS), FACTS)
    bench.cases.update(
        case_id, lambda saved: replace(saved, analyses=tuple(a for a in saved.analyses if a.kind not in again))
    )
    for kind in again:
        bench.analyse(case_id, kind)
    second_pass = second_pass_on(bench.cases.load(case_id), bench)
    if second_pass.answerable is None:
        return bench.cases.update(case_id, lambda _: second_pass)
    found = answered_probability(second_pass.question, second_pass.passages, bench.embedder)
    return bench.cases.update(case_id, lambda _: replace(second_pass, answerable=found))


def second_pass_on(case: Case, bench: Workbench) -> Case:
    """The case whose second pass says which facts of its present check are kept."""

    def told(analysis: Analysis) -> Analysis:
        if analysis.kind != REFINEMENT:
            return analysis
        report = replace(RefinementReport.from_dict(analysis.result), facts=facts_of(case))
        measured = assessed(report, case.passages, bench.tools.verifier(report.verifier))
        return replace(analysis, result=measured.to_dict())

    return replace(case, analyses=tuple(map(told, case.analyses)))


def draw_map(bench: Workbench) -> None:
    """Add the token map's rows of every sentence and of the first sentence's words: what a reader clicks first."""
    answer = bench.cases.load(EXAMPLE).answer
    bench.analyse(EXAMPLE, TOKEN_MAP, MapRows(sentences=tuple(range(len(answer.sentences)))))
    found = next(a for a in bench.cases.load(EXAMPLE).analyses if a.kind == TOKEN_MAP)
    tokens = TokenMap.from_dict(found.result).answer.tokens
    first = tuple(i for i, token in enumerate(tokens) if token.start < answer.sentences[0][1])
    bench.analyse(EXAMPLE, TOKEN_MAP, MapRows(tokens=first))


def solve(bench: Workbench, writer: str) -> Case:
    """Solve a problem of the science primer by RAISE."""
    problem = next(question for question in primer().questions if question.id == PROBLEM)
    asked = Problem(question=problem.question, options=problem.options)
    bench.cases.save(replace(new_case(asked, PRIMER, SOLVED, now()), tags=("worked example",)))
    bench.analyse(SOLVED, STEPS, StepsOptions(model=writer))
    return bench.cases.load(SOLVED)


def write(bench: Workbench, case: Case) -> None:
    """Write the case with its history into the project."""
    path = file_of(case.id)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(write_case_file(case, bench.cases.history(case.id)), mtime=0))
    print(f"{path}: {path.stat().st_size:,} bytes, {len(case.analyses)} analyses", file=sys.stderr)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writer", default=WRITER)
    parser.add_argument("--solved", action="store_true", help="the solved example alone")
    parser.add_argument("--checked", action="store_true", help="check the stored answers again, and nothing else")
    asked = parser.parse_args()
    bench = Workbench(Settings().with_values(SETTINGS))
    bench.prepare_first()
    if asked.checked:
        for case_id in (EXAMPLE, SELF_REFINED):
            write(bench, check(bench, case_id))
        return
    if not asked.solved:
        write(bench, make(bench, asked.writer))
    bench.prepare_rest()
    write(bench, solve(bench, asked.writer))


if __name__ == "__main__":
    main()
