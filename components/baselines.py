"""ARE compared with other methods, and the entropy of each method's queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.diff import changes
from components.html import escape, note, show, table, tag
from engine.analyses.facts import MEASURES
from engine.cases.words import word_diff
from engine.methods.are.baselines import Baseline, Entropy
from engine.methods.are.values import AreRecord, Measures

LABELS = {"drqa": "DRQA", "rarr": "RARR", "ccver": "CCVER", "efec-style": "EFEC-style editor"}


def baselines_table(found: Sequence[Baseline], record: AreRecord | None) -> None:
    """One row per method with its measures after editing, and those with evidence joined by clause."""
    heads = ["Method", *(name for name, _, _ in MEASURES), "Attr_r, by clause", "Attr_p, by clause"]
    rows = [_row("ARE", record.report.after, record.report.after)] if record and record.report else []
    rows += [_row(LABELS[one.name], one.measures, one.aggregated) for one in found]
    by = found[0].measures.by if found else ""
    show(
        table(
            heads, rows, f"Entailment by {by}. Baselines count each piece of evidence; ARE assigns evidence to clauses."
        )
    )


def _row(name: str, measures: Measures, aggregated: Measures | None) -> str:
    cells = [f"{getattr(measures, field):.3f}" for _, field, _ in MEASURES]
    cells += [f"{aggregated.attr_r:.3f}", f"{aggregated.attr_p:.3f}"] if aggregated else ["–", "–"]
    return tag("tr", tag("th", escape(name), scope="row") + "".join(tag("td", cell) for cell in cells))


def baseline_text(one: Baseline, answer: str) -> None:
    """The answer as the method left it, changes marked, and what it searched with."""
    show(tag("div", changes(word_diff(answer, one.revised)), class_="gw-answer"))
    for line in one.notes:
        note(line)
    searched = "".join(tag("li", escape(query)) for query in one.queries)
    show(tag("details", tag("summary", escape(f"Searched with {len(one.queries)}")) + tag("ol", searched)))
    for said in one.exchanges:
        parts = tag("pre", escape(said.prompt)) + tag("pre", escape(said.reply))
        show(tag("details", tag("summary", escape(f"Prompt and reply: {said.step}")) + parts))


def entropy_table(found: Mapping[str, Entropy]) -> None:
    """Facts and sub-questions: the paper's sum, and the surprisal per text and per token in nats."""
    heads = ("Texts", "n", "Tokens", "Entropy", "Surprisal per text, nats", "Surprisal per token, nats")
    rows = [
        tag(
            "tr",
            tag("th", escape(name.replace("_", "-")), scope="row")
            + "".join(
                tag("td", cell)
                for cell in (
                    f"{one.texts}",
                    f"{one.tokens}",
                    f"{one.entropy:.3g}",
                    f"{one.surprisal:.2f}",
                    f"{one.per_token:.3f}",
                )
            ),
        )
        for name, one in found.items()
    ]
    model = next(iter(found.values())).model
    show(table(heads, rows, f"Scored by {model} without passages. The first two also change with length alone."))
