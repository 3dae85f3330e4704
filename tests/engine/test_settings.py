"""Every setting is reached by `--set`, has a label, and is read by something: a walk over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from engine.analyses.kind import OCCLUSION
from engine.analyses.occlusion import OcclusionOptions
from engine.commands import main
from engine.core.errors import InputError
from engine.core.settings import PAPERS, Settings, all_settings
from engine.models.embedder import ScriptedEmbedder
from engine.studies.config import Config, as_toml, parse_config, with_assignments
from engine.workbench import Workbench

SCRIPTED = ScriptedEmbedder().name
TEXTS = (
    "Hanna Lind built the bridge in 1874. It is made of stone.",
    "The bridge was repaired in 1931 after a flood.",
    "Crystals form when the solution cools.",
    "Hot water dissolves the crude product.",
)
RECORD = {
    "id": "r",
    "question": "Who built the bridge?",
    "passages": [{"text": text, "title": f"T{i}", "relevant": bool(i % 2)} for i, text in enumerate(TEXTS)],
    "answer": "Hanna Lind built the bridge [cite_1].",
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The values read from any settings from here on, as (stage.field, value)."""
    seen: set[tuple[str, str]] = set()
    for stage in msgspec.structs.fields(Settings):
        kind = type(getattr(Settings(), stage.name))
        fields = {field.name for field in msgspec.structs.fields(kind)}
        monkeypatch.setattr(kind, "__getattribute__", recording(stage.name, fields, seen))
    return seen


def recording(stage: str, fields: set[str], seen: set[tuple[str, str]]) -> Callable[[Any, str], Any]:
    """A `__getattribute__` that notes each field with its value; plain copies and stamps do not go through it."""

    def get(self: Any, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name in fields:
            seen.add((f"{stage}.{name}", repr(value)))
        return value

    return get


def run(*arguments: str, settings: dict[str, Any], stdin: str = "") -> str:
    """A command with every one of these settings; its standard output."""
    chosen = [part for path, value in settings.items() for part in ("--set", f"{path}={text_of(value)}")]
    result = CliRunner().invoke(main, [*arguments, *chosen], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def text_of(value: Any) -> str:
    """A value as it is written on the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def ingest(folder: Path, settings: dict[str, Any] | None = None) -> None:
    """The four texts as the corpus `bridges`."""
    lines = [json.dumps({"_id": f"d{i}", "title": f"T{i}", "text": text}) for i, text in enumerate(TEXTS)]
    (folder / "bridges.jsonl").write_text("\n".join(lines))
    run(
        "ingest",
        str(folder / "bridges.jsonl"),
        "--corpus",
        "bridges",
        settings={EMBEDDER: SCRIPTED, **(settings or {})},
    )


EMBEDDER = "retrieval.embedder"
SHORT = {"decoding.max_new_tokens": 6}
CHUNKING = {"chunking.method": "words", "chunking.words": 7, "chunking.overlap": 2, EMBEDDER: SCRIPTED}
SEARCH = {"retrieval.documents": ("*",), "retrieval.k": 3, "retrieval.mode": "dense", "retrieval.rerank_pool": 2}
READING = {"retrieval.align_gap": 2, "retrieval.keep": 2, "reader.sentences": 1, "reader.close_enough": 0.01}
WRITING = {
    "retrieval.sentences": 3,
    "retrieval.doubt_under": 0.9,
    "prompting.citations": "alce",
    "prompting.refuse_under": 1e-9,
    "prompting.demonstrations": 1,
    "decoding.max_new_tokens": 5,
    "decoding.temperature": 0.9,
    "decoding.top_p": 0.5,
    "decoding.seed": 7,
}
SELECTION = {
    "selection.expansion": "neighbour",
    "selection.neighbour_threshold": 0.2,
    "selection.min_metrics": 2,
    "selection.max_share": 0.9,
    "selection.max_gap": 1,
    "selection.floor": "largest",
    "occlusion.seed": 9,
}
ATTRIBUTION = {
    "occlusion.count_citation_markers": True,
    "occlusion.placebos": 1,
    "occlusion.max_sources": 70,
    "gradient.target": "log_probability",
    "gradient.integrated_steps": 3,
}
PROXY = "occlusion.proxy"
PLACEBOS = {"occlusion.placebos": 2}
MAPS = {"faithfulness.check_maps": False}
FAITHFULNESS = {"faithfulness.steps": 2, "faithfulness.rankings": 2, "faithfulness.seed": 3}
REFINEMENT = {
    "refinement.demonstrations": 1,
    "refinement.max_new_tokens": 6,
    "refinement.temperature": 0.3,
    "refinement.seeds": (5, 6),
    "refinement.growth": 3.0,
    "refinement.overlap_percentile": 30.0,
    "refinement.overlap_cases": 1,
    "refinement.ranked_by": "gradient norm",
    "refinement.trigger": "labels",
    "refinement.seconds": 500.0,
    "gradient.first_tokens": 4,
    "gradient.used_top": 2,
    "gradient.share": 0.2,
}
ALONE = {"refinement.overlap_threshold": 0.6, "refinement.trigger": "concentration", "gradient.ratio": 1.2}
STEPS = {"reasoning.k": 2, "reasoning.threshold": 0.1, "reasoning.max_steps": 4, "reasoning.demonstrations": 1}
FACTS = {
    "verification.evidence_from": "corpus",
    "verification.passages": 4,
    "verification.keep": 2,
    "verification.max_iterations": 1,
    "verification.rank_by": "similarity",
    "verification.demonstrations": 1,
    "verification.word_for_word": False,
    "verification.sentence_alone": False,
    "verification.names_and_numbers": False,
    "verification.event_order": False,
    "verification.parties": False,
    "verification.roles": False,
    "verification.left_open": False,
    "verification.anchored": False,
    "verification.edit": False,
}
PARTS = {"verification.atomic": False, "verification.molecular": False, "verification.re_retrieval": False}
AGAIN = {"verification.row_words": False}


def test_the_walk_misses_no_setting() -> None:
    walks = (
        CHUNKING,
        SEARCH,
        READING,
        WRITING,
        SELECTION,
        ATTRIBUTION,
        PLACEBOS,
        MAPS,
        FAITHFULNESS,
        REFINEMENT,
        ALONE,
        STEPS,
        AGAIN,
    )
    walked = {path for walk in (*walks, ALONE, STEPS, FACTS, PARTS) for path in walk} | {"retrieval.reranker", PROXY}
    assert walked == {setting.path for setting in all_settings()}
    for walk in (*walks, ALONE, STEPS, FACTS, PARTS):
        assert all(value != Settings().value(path) for path, value in walk.items())


def assert_read(read: set[tuple[str, str]], settings: dict[str, Any]) -> None:
    """Each setting was read with the value that it was changed to."""
    assert {(path, repr(value)) for path, value in settings.items()} <= read


def test_chunking_and_embedder_are_read_by_an_ingest(tmp_path: Path, read: set[tuple[str, str]]) -> None:
    ingest(tmp_path, CHUNKING)
    assert_read(read, CHUNKING)


def test_search_and_answer_read_retrieval(tmp_path: Path, folders: tuple[str, str], read: set[tuple[str, str]]) -> None:
    ingest(tmp_path)
    run("search", "bridge", "--corpus", "bridges", "--rerank", settings=SEARCH)
    assert_read(read, SEARCH)
    reading = {**READING, "retrieval.reranker": folders[1]}
    run("ask", "Who built the bridge?", "--corpus", "bridges", "--model", "reader", settings=reading)
    assert_read(read, reading)


def test_a_written_answer_and_its_selection_read_theirs(
    tmp_path: Path, folders: tuple[str, str], read: set[tuple[str, str]]
) -> None:
    ingest(tmp_path)
    asked = ("ask", "Who built the bridge?", "--corpus", "bridges", "--model", folders[0])
    run(*asked, settings=WRITING)
    assert_read(read, WRITING)
    run(*asked, "--method", "attr-rag", settings={**SELECTION, **SHORT})
    assert_read(read, SELECTION)


def test_attributions_and_curves_read_theirs(
    tmp_path: Path, folders: tuple[str, str], read: set[tuple[str, str]]
) -> None:
    methods = ("--method", "occlusion,input-x-gradient,integrated-gradients")
    run("attribute", "-", *methods, "--model", folders[0], settings=ATTRIBUTION, stdin=json.dumps(RECORD))
    assert_read(read, ATTRIBUTION)
    small = {PROXY: folders[0]}
    run("attribute", "-", "--method", "hierarchy", "--model", folders[0], settings=small, stdin=json.dumps(RECORD))
    assert_read(read, small)
    run("faithfulness", "-", "--model", folders[0], settings=FAITHFULNESS, stdin=json.dumps(RECORD))
    assert_read(read, FAITHFULNESS)


def test_an_occlusion_reads_its_placebos(tmp_path: Path, folders: tuple[str, str], read: set[tuple[str, str]]) -> None:
    ingest(tmp_path)
    bench = Workbench(Settings().with_values({**PLACEBOS, EMBEDDER: SCRIPTED}))
    case = bench.ask("Who built the bridge?", "bridges", model="reader")
    bench.analyse(case.id, OCCLUSION, OcclusionOptions(model=folders[0]))
    assert_read(read, PLACEBOS)


def test_a_token_map_reads_whether_it_is_checked(folders: tuple[str, str], read: set[tuple[str, str]]) -> None:
    case = json.loads(run("audit", "-", settings={}, stdin=json.dumps(RECORD)))["case"]
    run("analyse", case, "token map", "--with", f"model={folders[0]}", settings=MAPS)
    assert_read(read, MAPS)


def test_the_conditions_read_theirs(folders: tuple[str, str], read: set[tuple[str, str]]) -> None:
    records = "\n".join(json.dumps({**RECORD, "id": f"r{i}"}) for i in range(2))
    run("refine", "-", "--variants", "A,C1,D,v2c", "--model", folders[0], settings=REFINEMENT, stdin=records)
    assert_read(read, REFINEMENT)
    alone = {**ALONE, "refinement.max_new_tokens": 12}
    run("refine", "-", "--variants", "A,D,v2a", "--model", folders[0], settings=alone, stdin=json.dumps(RECORD))
    assert_read(read, ALONE)


def test_steps_read_theirs(tmp_path: Path, folders: tuple[str, str], read: set[tuple[str, str]]) -> None:
    ingest(tmp_path)
    problem = json.dumps({"id": "p", "question": "Who built the bridge?", "options": ["Lind", "Berg"]})
    run("steps", "-", "--corpus", "bridges", "--model", folders[0], settings={**STEPS, **SHORT}, stdin=problem)
    assert_read(read, STEPS)


def test_the_check_of_facts_reads_its_own(tmp_path: Path, read: set[tuple[str, str]]) -> None:
    ingest(tmp_path)
    answer = json.dumps(
        {**RECORD, "answer": "Hanna Lind built the bridge in 1931. Crystals form when the flood cools."}
    )
    run("facts", "-", "--corpus", "bridges", settings=FACTS, stdin=answer)
    assert_read(read, FACTS)
    run("facts", "-", "--corpus", "bridges", settings=PARTS, stdin=answer)
    assert_read(read, PARTS)
    run("facts", "-", "--corpus", "bridges", settings=AGAIN, stdin=answer)
    assert_read(read, AGAIN)


def test_a_setting_is_a_finite_number() -> None:
    with pytest.raises(InputError, match=r"decoding\.temperature is inf"):
        Settings().apply(["decoding.temperature=inf"])


def test_every_setting_says_what_it_is() -> None:
    for setting in all_settings():
        assert setting.label and setting.label[0].isupper(), setting.path
        assert setting.default == Settings().value(setting.path)
    known = {setting.path for setting in all_settings()}
    for name, paper in PAPERS.items():
        assert set(paper.gives) <= known
        assert all(given.section for given in paper.gives.values()), name


def test_a_config_takes_a_paper_and_assignments() -> None:
    config = parse_config('study = "abpc"\ndata = "d"\npaper = "attr-rag"\n[settings.retrieval]\nk = 12\n')
    retrieval = config.stages(1).retrieval
    assert (retrieval.k, retrieval.mode) == (12, "dense")
    changed = with_assignments(config, ["paper=raise", "retrieval.k=4", "refinement.seeds=1,2"])
    again = parse_config(as_toml(changed))
    assert (again, again.paper) == (changed, "raise")
    stages = again.stages(9)
    assert parse_config('study = "refinement"\ndata = "d"\npaper = "refinement"\n').stages(1).retrieval.sentences == 0
    assert (stages.retrieval.k, stages.reasoning.threshold, stages.refinement.seeds) == (4, 0.84, (1, 2))
    assert (stages.decoding.seed, stages.retrieval.reranker) == (9, "best-sentence")
    with pytest.raises(InputError, match=r"decoding.seed has no effect.*seeds"):
        with_assignments(config, ["decoding.seed=7"])
    with pytest.raises(InputError, match="no paper 'x'"):
        with_assignments(Config(study="abpc", data="d"), ["paper=x"])
