"""Occlusion by regeneration and Attr-RAG whole, with writers whose behaviour is known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.analyses.attr_rag import KIND, _alpha
from engine.answer.citations import annotate
from engine.answer.write import prompting
from engine.cases.review import Review
from engine.core.errors import AttributionError
from engine.core.settings import Decoding, Prompting, Selection
from engine.core.values import IMPORTED, Analysis, Answer, ChunkSet, Hit, Passage
from engine.methods.attr_rag import (
    WHY,
    against_reference,
    answers_needed,
    attr_rag,
    baseline_passages,
    scored_by,
    winners,
    with_drops,
)
from engine.methods.regeneration import alphas, attribution_of, regenerate, regenerating
from engine.methods.subject import answer_for, banner
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from engine.report.html import fragment
from engine.retrieve.search import rerank
from tests.engine.cases.samples import full_case


class LetterEmbedder:
    """Counts of letters, normalised: deterministic and cheap."""

    name = "letters"
    dimensions = 26

    def embed(self, texts, watch=None):
        import numpy as np

        rows = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def passage(name, ordinal=0, document=None):
    text = f"{name} says {name}."
    document = document or name
    start = ordinal * 100
    return Passage(
        id=f"{document}-{ordinal}",
        document=document,
        title="",
        ordinal=ordinal,
        start=start,
        end=start + len(text),
        text=text,
    )


def quote_wanted(*wanted):
    """A writer that says what the wanted passages say, in the order given, and nothing else."""

    def write(question, passages):
        return Answer(text=" ".join(p.text for p in passages if any(name in p.text for name in wanted)))

    return write


SETS = tuple(
    ChunkSet(passages=(passage(name),), text=f"{name} says {name}.", score=1.0 - i / 10)
    for i, name in enumerate(("alpha", "beta", "gamma", "delta"))
)
SOURCES = [chunk_set.passages for chunk_set in SETS]
PLACEBOS = (passage("ships"), passage("tides"), passage("winds"))


def run(write, sets=SETS, **more):
    """Attr-RAG by a writer that is the same whatever passages keep their numbers."""
    return attr_rag("q", sets, lambda numbered: write, embedder=LetterEmbedder(), **more)


def write_lost(question, passages):
    """Every set is named, and any unrelated passage turns the answer around."""
    lost = any(p in PLACEBOS for p in passages)
    return Answer(text="Nobody can say." if lost else " ".join(p.document for p in passages))


def test_leaving_out_what_the_writer_uses_changes_the_answer_and_nothing_else_does():
    result = regenerate("q", SOURCES, quote_wanted("alpha", "gamma"), LetterEmbedder(), placebos=PLACEBOS)
    for metric, values in result.alphas.items():
        assert values[1] == values[3] == 0.0, metric
        assert values[0] > 0.05 and values[2] > 0.05, metric
    assert set(result.alphas) == {"cosine", "jaccard", "rouge_1", "rouge_2", "rouge_l", "rouge_lsum"}
    assert result.floors == dict.fromkeys(result.alphas, 0.0)
    assert result.written == 4 + 1 + 1 + 3


def test_a_stopped_regeneration_has_the_sources_written_so_far_and_names_the_others():
    given = "q", SOURCES, quote_wanted("alpha", "gamma"), LetterEmbedder()
    *grown, whole = regenerating(*given, placebos=PLACEBOS)
    assert [len(value.ablated) for value in grown] == [1, 2, 3, 4]
    assert whole == regenerate(*given, placebos=PLACEBOS)
    for value in grown:
        written = len(value.ablated)
        assert value.alphas == {metric: values[:written] for metric, values in whole.alphas.items()}
        found = attribution_of(value, "scripted")
        assert found.sources == tuple((n,) for n in range(1, written + 1)) and found.numerical_floor is None
    assert grown[2].notes == ("Not scored, because the run has not reached them: source 4, the floors.",)


def test_alpha_by_hand():
    full, other = Answer(text="iron rusts fast [cite_1]"), Answer(text="iron rusts slowly [cite_3]")
    values = alphas(full, [other], LetterEmbedder())
    assert values["jaccard"] == pytest.approx((1 - 2 / 4,))
    assert values["rouge_1"] == pytest.approx((1 - 2 / 3,))
    assert values["rouge_2"] == pytest.approx((1 - 1 / 2,))


def test_equal_answers_have_alpha_zero_in_every_metric_whatever_their_length_and_markers():
    for text in ("Paris", "", "Paris [cite_2]"):
        values = alphas(Answer(text=text), [Answer(text=text.replace("2", "1"))], LetterEmbedder())
        assert all(value == (0.0,) for value in values.values())


def test_the_floor_is_what_an_unrelated_passage_changes():
    def write(question, passages):
        return Answer(text="alpha says alpha." + " more or less so" * any(p in PLACEBOS[:2] for p in passages))

    result = regenerate("q", SOURCES, write, LetterEmbedder(), placebos=PLACEBOS)
    assert all(floor > 0.1 for floor in result.floors.values())
    assert regenerate("q", SOURCES, write, LetterEmbedder()).notes == (
        "The floor uses 0 unrelated passages instead of 3.",
    )


def test_one_placebo_that_turns_the_answer_around_does_not_close_the_selection():
    def write(question, passages):
        known = [name for name in ("alpha", "gamma") if any(name in p.text for p in passages)]
        return Answer(text="Nobody knows." if any("ships" in p.text for p in passages) else f"It is {known}.")

    result = run(write, placebos=PLACEBOS)
    assert set(result.regeneration.floors.values()) == {0.0}
    assert result.selection.primary == 0 and set(result.selection.chosen) == {0, 2}
    closed = run(write, placebos=PLACEBOS, settings=Selection(floor="largest"))
    assert closed.selection.primary is None


def test_what_unrelated_passages_change_as_much_is_said_so_and_can_be_kept():
    found = run(write_lost, placebos=PLACEBOS, settings=Selection(min_metrics=1))
    assert found.selection.notes[0].startswith("No set is above its floor in any metric")
    assert "No set changed" not in " ".join(found.notes)
    free = run(write_lost, placebos=PLACEBOS, settings=Selection(min_metrics=1, floor="none"))
    assert free.selection.primary is not None
    assert free.selection.chosen == found.selection.without_floor


def test_attr_rag_keeps_what_changes_the_answer_and_writes_again():
    result = run(quote_wanted("beta", "delta"), placebos=PLACEBOS)
    assert result.selection.chosen == (1, 3)
    assert [p.document for p in result.passages] == ["beta", "delta"]
    assert result.answer.text == "beta says beta. delta says delta."
    assert result.regeneration.full.text == result.answer.text
    assert [step.name for step in result.steps] == ["occlusion by regeneration", "selection", "final answer"]
    assert result.steps[1].counts == {"kept": 2, "sets": 4}
    assert result.regeneration.written + 1 == answers_needed(4)
    assert type(result).from_dict(result.to_dict()) == result


def test_attr_rag_fills_gaps_from_the_document():
    doc = {n: passage(f"part{n}", n, "doc") for n in range(6)}
    sets = (
        ChunkSet(passages=(doc[4],), text=doc[4].text, score=0.9),
        ChunkSet(passages=(passage("noise"),), text="noise", score=0.8),
        ChunkSet(passages=(doc[2],), text=doc[2].text, score=0.7),
        ChunkSet(passages=(passage("more"),), text="more", score=0.6),
    )
    result = run(quote_wanted("part"), sets, lookup=lambda document, n: doc.get(n) if document == "doc" else None)
    assert [p.ordinal for p in result.kept] == [4, 2]
    assert [p.ordinal for p in result.filled] == [3]
    assert [p.ordinal for p in result.passages] == [2, 3, 4]
    assert result.answer.text == "part2 says part2. part3 says part3. part4 says part4."


def test_attr_rag_says_when_no_set_matters():
    result = run(lambda q, p: Answer(text="From memory."), settings=Selection(max_share=0.25))
    assert result.selection.primary is None
    assert result.kept == SETS[0].passages
    assert "No set changed the answer" in result.notes[0]
    with pytest.raises(AttributionError, match="The search returned no passages"):
        run(quote_wanted("x"), ())


def test_a_quoting_writer_is_named_as_such():
    def write(question, passages):
        return Answer(text=passages[0].text, quotes=((0, 1, 0, len(passages[0].text)),))

    assert "only shows which sets it quoted" in run(write).notes[-1]


def test_numbers_stay_when_a_set_is_left_out():
    model = ScriptedWriter(lambda text: "Seen [cite_4].")

    def writing(numbered):
        write = prompting(model, Prompting(), Decoding(), numbered)
        return lambda question, passages: write(question, passages).answer

    result = attr_rag("q", SETS, writing, embedder=LetterEmbedder(), placebos=PLACEBOS)
    full, without_beta, with_ships = model.prompts[0], model.prompts[2], model.prompts[6]
    assert "Passage 1: alpha" in without_beta and "Passage 3: gamma" in without_beta
    assert "Passage 2" in full and "Passage 2" not in without_beta
    assert "Passage 5: ships" in with_ships
    assert result.regeneration.ablated[1].citations[0].valid


class Undecided(ScriptedWriter):
    """Says another word each time it samples, and always the same without sampling."""

    def __init__(self):
        super().__init__(lambda text: "")
        self.sampled = 0

    def generate(self, prompt, decoding, on_text=None, watch=None):
        self.sampled += decoding.temperature > 0
        return Answer(text=f"word{self.sampled}")


def test_answers_that_are_compared_are_written_greedily():
    model = Undecided()

    def writing(numbered):
        write = prompting(model, Prompting(), Decoding(temperature=0.7), numbered)
        return lambda question, passages: write(question, passages).answer

    result = attr_rag("q", SETS, writing, embedder=LetterEmbedder(), placebos=PLACEBOS)
    assert {value for values in result.regeneration.alphas.values() for value in values} == {0.0}
    assert model.sampled == 1 and result.answer.text == "word1", "only the last answer is written as it is set"


def test_the_teacher_forced_drop_is_a_column_and_does_not_vote():
    def logprob(passages, words, t):
        return -3.0 + sum(1.0 for text in passages.values() if "gamma" in text)

    scorer = ScriptedScorer(logprob, name="judge")
    with_score = run(quote_wanted("beta"), score=scored_by(scorer, writer="quoting reader"))
    without = run(quote_wanted("beta"))
    assert with_score.drops.scores[0] == pytest.approx((0, 0, 3, 0))
    assert with_score.drops.notes[0] == banner("quoting reader", "judge")
    assert with_score.selection == without.selection
    assert without.drops is None
    afterwards = with_drops(without, scored_by(scorer, writer="quoting reader")).drops
    assert (afterwards.scores, afterwards.sources) == (with_score.drops.scores, with_score.drops.sources)


def test_a_run_is_kept_where_its_drops_cannot_be_scored():
    scorer = ScriptedScorer(lambda p, w, t: -1.0, name="judge")
    found = run(lambda question, passages: Answer(text="[cite_1]"), score=scored_by(scorer, writer="reader"))
    assert found.drops is None and found.answer.text == "[cite_1]"
    assert found.notes[0].startswith("The teacher-forced drops are missing. ")


def test_what_code_says_counts_in_a_comparison():
    heated, cooled = (Answer(text=f"Do this:\n```\n{step}\n```") for step in ("heat to 90 C", "cool it slowly"))
    assert all(value > 0 for (value,) in alphas(heated, [cooled], LetterEmbedder()).values())
    bold = Answer(text="Do **this**."), Answer(text="Do this.")
    assert all(value == 0 for (value,) in alphas(bold[0], [bold[1]], LetterEmbedder()).values())


def test_the_citations_of_an_answer_are_read_in_the_style_it_is_written_in():
    scorer = ScriptedScorer(lambda p, w, t: -1.0, name="s")
    for text in ("Ice melts. [1] Water boils. [2]", "Ice melts. [cite_1] Water boils. [cite_2]"):
        again = answer_for(scorer, Answer(text=text), "other", 2)
        assert [citation.number for citation in again.citations] == [1, 2]
        assert again.sentences == ((0, text.index(" Water")), (text.index("Water"), len(text)))


def test_an_answer_is_tokenised_again_only_for_another_scorer():
    scorer = ScriptedScorer(lambda p, w, t: -1.0, name="s")
    answer = annotate(scorer.encode_answer("Iron rusts [cite_1]."), 2)
    assert answer_for(scorer, answer, "s", 2) is answer
    again = answer_for(scorer, Answer(text="Iron rusts [cite_1]."), "other", 2)
    assert again == answer
    assert banner("s", "s") == ""
    assert banner("w", "s").startswith("Written by w. Scored by s.")
    assert banner(IMPORTED, "s").startswith("Written by a system that the record does not name. Scored by s.")


class LengthReranker:
    name = "longest first"

    def rank_scores(self, question, texts):
        import numpy as np

        return np.array([float(len(text)) for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("method", "depth", "read"),
    [
        ("vanilla", 1, ["a"]),
        ("vanilla", 2, ["a", "bbbb"]),
        ("re-ranked", 1, ["bbbb"]),
        ("re-ranked", 2, ["bbbb", "cc"]),
    ],
)
def test_baselines_are_vanilla_and_re_ranked_at_each_depth(method, depth, read):
    pool = [Hit(passage=passage(name), score=1.0) for name in ("a", "bbbb", "cc")]
    assert [p.document for p in baseline_passages(method, depth, "q", pool, LengthReranker())] == read


def test_the_re_ranked_baseline_reads_what_attr_rags_re_ranking_reads():
    titled = [replace(passage(name), title=f"On_{name}") for name in ("a", "b")]
    seen = []

    class Keeping(LengthReranker):
        def rank_scores(self, question, texts):
            seen.append(list(texts))
            return super().rank_scores(question, texts)

    baseline_passages("re-ranked", 1, "q", [Hit(passage=p, score=1.0) for p in titled], Keeping())
    rerank("q", [ChunkSet(passages=(p,), text=p.text, score=1.0) for p in titled], Keeping())
    assert seen[0] == seen[1] == ["On a\n\na says a.", "On b\n\nb says b."]


def test_the_winner_is_what_most_metrics_favour():
    answers = {"a": "iron rusts in water", "b": "gold"}
    table = {name: against_reference(a, "iron rusts in wet air", LetterEmbedder()) for name, a in answers.items()}
    assert set(table["a"]) == {"cosine", "jaccard", "rouge_1", "rouge_2", "rouge_l", "rouge_lsum", "bleu"}
    assert winners(table) == ("a",)
    assert winners({}) == ()
    assert winners({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 0.0, "y": 1.0}}) == ("a", "b")


def test_page_and_report_say_for_every_set_why_and_what_other_rules_would_have_kept():
    found = run(quote_wanted("beta"), placebos=PLACEBOS)
    reasons = found.selection.reasons
    assert [r.split(":")[0] for r in reasons] == ["Dropped", "Kept", "Dropped", "Dropped"]
    case = replace(full_case(), chunk_sets=SETS)
    analysis = Analysis(id="attr-rag", kind="attr-rag", stamp=case.stamp, result=found.to_dict())
    (table,) = [b for b in KIND.blocks(case, KIND.read(analysis), Review()) if getattr(b, "columns", ()) == WHY]
    assert [tuple(cell.text for cell in row[1:]) for row in table.rows] == [found.selection.why(j) for j in range(4)]
    drawn = fragment((table,))
    assert all(reason in drawn for reason in reasons) and drawn.count("<tr>") == 5
    sets = next(
        b for b in KIND.blocks(case, KIND.read(analysis), Review()) if getattr(b, "columns", ("",))[-1] == "Selection"
    )
    notes = [[cell.note for cell in row] for row in sets.rows[:4]]
    assert [row[-1] for row in notes][1].startswith("by ")
    under = [row for row in notes if row[-1] == "none above its floor"]
    assert under and not any(note for row in under for note in row[1:-1])


def test_what_a_metric_chose_without_a_floor_is_bold_also_under_it():
    free = run(write_lost, placebos=PLACEBOS, settings=Selection(min_metrics=1, floor="none"))
    chosen = next(j for j, by in enumerate(free.selection.chosen_by) if "jaccard" in by)
    assert free.regeneration.alphas["jaccard"][chosen] <= free.regeneration.floors["jaccard"]
    assert _alpha(free, "jaccard", chosen).kind == "chosen"
