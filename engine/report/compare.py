"""Two cases, or two answers of one case, side by side.

Settings that differ come first, then passages, words, scores, verdicts, attribution. Attributions are put on one
scale: each case's scores of the same method as shares of its largest absolute score, in [-1, 1], because nats of two
models are no common unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.attribution import attribution_of
from engine.analyses.case_verdict import in_words
from engine.analyses.refinement import KIND as REFINED
from engine.cases.blocks import short
from engine.cases.places import leaves, verdicts
from engine.cases.review import Mark, Review, review_of, status_name, with_labels
from engine.cases.store import CaseStore
from engine.cases.words import DiffWord, word_diff
from engine.core.errors import CaseError
from engine.core.values import Analysis, Case, Passage, Stamp, Value, inputs_hash
from engine.methods.refinement.run import RefinementReport, report_facts, report_scores

# What differs between any two runs and says nothing about how they were made.
NOT_SETTINGS = ("created", "inputs")
NO_VERDICT, NOT_REVIEWED = "no verdict", "not reviewed"
NOT_SET = "not set"


class Difference(Value, frozen=True):
    """A setting with its two values; "" where one side has none."""

    name: str
    left: str
    right: str


ALONE = "only here"  # the match of a passage that the other case does not have


class Aligned(Value, frozen=True):
    """A passage in either case: its numbers there (None where it is not), its first words, and how sure the match is.

    `match` is "same passage" (same id), "same text", "overlapping span" of one document, or "only here".
    """

    title: str
    left: int | None
    right: int | None
    match: str
    cited: tuple[int, int] = (0, 0)
    attribution: dict[str, tuple[float | None, float | None]] = {}

    @property
    def differences(self) -> tuple[str, ...]:
        """The ways in which it differs, in words: "only on the left", "ranked differently"; empty for none."""
        if None in (self.left, self.right):
            return ("only on the left" if self.right is None else "only on the right",)
        found = {
            "ranked differently": self.left != self.right,
            "cited differently": self.cited[0] != self.cited[1],
            "scored differently": any(left != right for left, right in self.attribution.values()),
        }
        return tuple(name for name, differs in found.items() if differs)


class Comparison(Value, frozen=True):
    """Everything that differs. `verdicts` and `reviews` are (place, left, right).

    With `questions_differ` both are empty, and all else is doubtful. `scores` are those of two answers of a
    refinement, where both sides have them.
    """

    left: str
    right: str
    questions_differ: bool
    settings: tuple[Difference, ...]
    passages: tuple[Aligned, ...]
    words: tuple[DiffWord, ...]
    verdicts: tuple[Difference, ...]
    methods: tuple[str, ...]
    scores: tuple[Difference, ...] = ()
    reviews: tuple[Difference, ...] = ()


def compare_cases(
    left: Case, right: Case, left_review: Review = Review(), right_review: Review = Review()
) -> Comparison:
    """Compare two cases."""
    ours, theirs = shared_scales(left), shared_scales(right)
    methods = tuple(method for method in ours if method in theirs)
    aligned = tuple(
        Aligned(
            title=(left.passages[i - 1] if i else right.passages[(j or 1) - 1]).label,
            left=i,
            right=j,
            match=match,
            cited=(_cited(left, i), _cited(right, j)),
            attribution={m: (ours[m].get(i or 0), theirs[m].get(j or 0)) for m in methods},
        )
        for i, j, match in align(left.passages, right.passages)
    )
    comparable = left.question == right.question
    return Comparison(
        left=left.id,
        right=right.id,
        questions_differ=not comparable,
        settings=setting_differences(left.stamp, right.stamp),
        passages=aligned,
        words=word_diff(left.answer.text, right.answer.text),
        verdicts=differences(map(_verdicts, (left, right)), NO_VERDICT) if comparable else (),
        methods=methods,
        scores=score_differences(left, right),
        reviews=differences(map(_reviewed, (left_review, right_review)), NOT_REVIEWED) if comparable else (),
    )


def differences(sides: Iterable[Mapping[str, Any]], absent: Any = None) -> tuple[Difference, ...]:
    """The names under which the values of the two sides are not the same; a side without one has `absent`."""
    left, right = sides
    rows = [(name, left.get(name, absent), right.get(name, absent)) for name in dict.fromkeys((*left, *right))]
    return tuple(Difference(name=name, left=short(a), right=short(b)) for name, a, b in rows if a != b)


def score_differences(left: Case, right: Case) -> tuple[Difference, ...]:
    """Figures of two answers that are not the same; none where a side was not scored."""
    sides = [[a.stored() for a in case.analyses if a.kind == SCORES] for case in (left, right)]
    if not all(sides):
        return ()
    return differences({name.replace("_", " "): value for name, value in found[0].items()} for found in sides)


def setting_differences(left: Stamp, right: Stamp) -> tuple[Difference, ...]:
    """Model, revision, settings, seed and versions that are not the same."""
    sides = [leaves({k: v for k, v in s.to_dict().items() if k not in NOT_SETTINGS}) for s in (left, right)]
    told = ({name: NOT_SET if value in (None, "") else str(value) for name, value in side} for side in sides)
    return differences(told, absent=NOT_SET)


MATCHES = ("same passage", "same text", "overlapping span")  # the best first


def align(left: Sequence[Passage], right: Sequence[Passage]) -> list[tuple[int | None, int | None, str]]:
    """Passage numbers that belong together, in the left's order, then what is in the right alone.

    Best matches are taken first: the same id, then the same text, then the largest overlap in one document.
    """
    pairs = (
        (*match, i, j)
        for i, one in enumerate(left, start=1)
        for j, other in enumerate(right, start=1)
        if (match := _match(one, other))
    )
    partner: dict[int, tuple[int, str]] = {}
    taken: set[int] = set()
    for rank, _, i, j in sorted(pairs):
        if i not in partner and j not in taken:
            partner[i] = (j, MATCHES[rank])
            taken.add(j)
    rows: list[tuple[int | None, int | None, str]] = [
        (i, *partner.get(i, (None, ALONE))) for i in range(1, len(left) + 1)
    ]
    return [*rows, *((None, j, ALONE) for j in range(1, len(right) + 1) if j not in taken)]


def _match(one: Passage, other: Passage) -> tuple[int, int] | None:
    """(place of the match in `MATCHES`, minus the characters shared); None without a match."""
    if one.text == other.text:
        return (0 if one.id == other.id else 1), 0
    start, end = max(one.start, other.start), min(one.end, other.end)
    if one.document != other.document or end <= start:
        return None
    # Pasted passages share names and starts, and a document changes: what overlaps has the same characters.
    ours, theirs = (p.text[start - p.start : end - p.start] for p in (one, other))
    return (2, start - end) if ours == theirs else None


def _cited(case: Case, number: int | None) -> int:
    return sum(c.valid and c.number == number for c in case.answer.citations)


def shared_scales(case: Case) -> dict[str, dict[int, float]]:
    """For each method the score of each passage for the first span, as a share in [-1, 1] of the largest absolute one.

    Each passage of a group has the group's score.
    """
    found: dict[str, dict[int, float]] = {}
    for attribution in filter(None, map(attribution_of, case.analyses)):
        scores = attribution.scores[0] if attribution.scores else ()
        largest = max(map(abs, scores), default=0.0) or 1.0
        groups = zip(attribution.sources, scores, strict=True)
        shares = {number: score / largest for numbers, score in groups for number in numbers}
        found.setdefault(attribution.method, shares)
    return found


def _verdicts(case: Case) -> dict[str, str]:
    """The machines' verdicts by label, so that the same fact is found in both; a proposed edit is not a verdict."""
    found = (place for analysis in case.analyses for place in verdicts(analysis))
    said = {place.label: in_words(place.machine) for place in found if not place.target.startswith("edit:")}
    return {**said, "refused": "yes" if case.answer.refused else "no"}


def _reviewed(review: Review) -> dict[str, str]:
    """The reviewers' verdicts by their places, and the status."""
    return {**{mark.place: mark.value for mark in review.overrides.values()}, "status": status_name(review.status)}


# A refinement's answers as cases, so that two of them, or one and another case, are compared like any two. A side is
# named CASE, or CASE:CONDITION for what a condition of the case's last refinement wrote.

KEPT = "facts of A"
SCORES = "scores"


def side(store: CaseStore, name: str) -> tuple[Case, tuple[Mark, ...]]:
    """The case that a side names, with its history; raise `CaseNotFound`, `CaseError` for an unknown condition."""
    case_id, _, condition = name.partition(":")
    case, history = store.load_whole(case_id)
    return (variant_case(with_labels(case, review_of(history)), condition), ()) if condition else (case, history)


def conditions(case: Case) -> tuple[str, ...]:
    """The conditions of the case's last refinement that have an answer."""
    found = REFINED.last(case)
    return tuple(n for n, v in found.refinement.variants.items() if v.answer is not None) if found else ()


def variant_case(case: Case, name: str) -> Case:
    """A condition's text as the answer of a case, with the analyses of this answer."""
    report = REFINED.last(case)
    variant = report.refinement.variants.get(name) if report else None
    if report is None or variant is None or variant.answer is None:
        known = ", ".join(conditions(case)) or "none; run them on the Refinement page"
        raise CaseError(f"The case {case.id!r} has no answer of condition {name!r}. Available: {known}.")
    stamp, trigger = report.refinement.stamp, variant.trigger
    second = "no rule" if trigger is None else trigger.sentence
    condition = {"name": name, "outcome": variant.outcome, "second pass": second}
    answered = inputs_hash(case.question, case.passages, variant.answer.text)
    about = tuple(a for a in case.analyses if a.stamp.inputs == answered and a.kind != REFINED.name)
    return replace(
        case,
        id=f"{case.id}:{name}",
        parent=case.id,
        answer=variant.answer,
        prompt=variant.turns[-1].prompt if variant.turns else case.prompt,
        stamp=replace(
            stamp, inputs=inputs_hash(case.question, case.passages), settings={**stamp.settings, "condition": condition}
        ),
        analyses=(*about, *_figures(case, report, name, answered)),
    )


def _figures(case: Case, report: RefinementReport, name: str, answered: str) -> tuple[Analysis, ...]:
    """A's facts with their verdicts, with those that the answer no longer states marked, and its scores."""
    stamp = replace(report.refinement.stamp, inputs=answered)
    kept, listed = report_facts(report), []
    for fact, in_a in zip(kept.get(name, ()), kept.get("A", ()), strict=True):
        change = {"said": "", "gone": "not stated", "unclear": "unclear whether stated"}[fact.state(in_a)]
        verdict = f"{change}; in A: {in_words(fact.verdict)}" if change else fact.verdict
        listed.append({"fact": fact.fact, "verdict": verdict})
    scores = report_scores(report, case.passages)[name].to_dict()
    scores.pop("missing")
    found = [Analysis(id=SCORES, kind=SCORES, stamp=stamp, result=scores)]
    if listed:
        found.append(Analysis(id=KEPT, kind=KEPT, stamp=stamp, result={"facts": listed}))
    return tuple(found)
