"""Make the bundled worked example: one case with every analysis except the steps.

    GROUNDWORK_HOME=$(mktemp -d) python -m bench.worked_example [--writer qwen2.5-coder-1.5b]

writes it again (after a change of the bundled models). The reader quotes the answer and the embedded model scores it.
`--writer` writes the second passes. Each number carries the stamp of its run, and replay scores it again as in any
other case.
"""

from __future__ import annotations

import argparse
import gzip
import sys

from msgspec.structs import replace

from engine.analyses.kind import FACTS, FAITHFULNESS, OCCLUSION, REFINEMENT, TOKEN_MAP, USED_SUPPORTS
from engine.analyses.refinement import RefinementOptions
from engine.analyses.token_map import MapRows, TokenMap
from engine.cases.bundled import EXAMPLE, file_of
from engine.cases.case_file import write_case_file
from engine.core.settings import Settings
from engine.core.values import Case
from engine.workbench import Workbench

QUESTION = "How is crude acetaminophen recrystallized, and how are the crystals dried?"
CORPUS = "bench-chemistry"
ATTRIBUTIONS = (OCCLUSION, TOKEN_MAP, FAITHFULNESS, USED_SUPPORTS)
CONDITIONS = ("A", "B", "D")
WRITER = "qwen2.5-coder-1.5b"
# Few random rankings: enough to show, a quarter of the cost. No worked examples before a second pass: with them Qwen's
# revision answered the question of the example.
SETTINGS = {"faithfulness.rankings": 5, "refinement.demonstrations": 0}


def make(bench: Workbench, writer: str) -> Case:
    """Ask and run every analysis; `writer` is a model's name."""
    bench.ask(QUESTION, CORPUS, method="attr-rag", case_id=EXAMPLE)
    for kind in (*ATTRIBUTIONS, FACTS):
        bench.analyse(EXAMPLE, kind)
    draw_map(bench)
    scorer = bench.scorer().name
    wanted = RefinementOptions(model=writer, variants=CONDITIONS, gate="always", use_answer=True, scorer=scorer)
    bench.analyse(EXAMPLE, REFINEMENT, wanted)
    return bench.cases.update(EXAMPLE, lambda saved: replace(saved, tags=("worked example",)))


def draw_map(bench: Workbench) -> None:
    """Add the token map's rows of every sentence and of the first sentence's words: what a reader clicks first."""
    answer = bench.cases.load(EXAMPLE).answer
    bench.analyse(EXAMPLE, TOKEN_MAP, MapRows(sentences=tuple(range(len(answer.sentences)))))
    found = next(a for a in bench.cases.load(EXAMPLE).analyses if a.kind == TOKEN_MAP)
    tokens = TokenMap.from_dict(found.result).answer.tokens
    first = tuple(i for i, token in enumerate(tokens) if token.start < answer.sentences[0][1])
    bench.analyse(EXAMPLE, TOKEN_MAP, MapRows(tokens=first))


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writer", default=WRITER)
    asked = parser.parse_args()
    bench = Workbench(Settings().with_values(SETTINGS))
    bench.prepare_first()
    case = make(bench, asked.writer)
    path = file_of(EXAMPLE)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(write_case_file(case, bench.cases.history(EXAMPLE)), mtime=0))
    print(f"{path}: {path.stat().st_size:,} bytes, {len(case.analyses)} analyses", file=sys.stderr)


if __name__ == "__main__":
    main()
