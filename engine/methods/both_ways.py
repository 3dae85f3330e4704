"""Occlusion both ways: what a passage adds to the others, and what it adds alone, as gains in probability.

Left out of all passages, a passage whose words another one has too scores near 0; alone, it is credited for what any
text on the subject would do. For each token of the answer the gain is taken both ways, and only where it is one: a
loss says that a passage made the model expect other words, not where these came from. In nats a few tokens that the
model hardly expects decide a span; in probability no token counts more than another. No paper's method; the two
differences are those of occlusion.py. On answers with known sources it does better than leave-one-out, a little better
than verbatim matching, and as well as Shapley values of these gains (bench/RESULTS.md, "The source of real answers").
Left out: what speaks against an answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace as changed

from msgspec.structs import replace

from engine.core.progress import Watch, last
from engine.core.values import Answer, Attribution, Prompt
from engine.methods.occlusion import ask, attribution_of, score_rows
from engine.methods.spans import Span
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, require

METHOD = "occlusion both ways"
UNIT = "gained probability"


def both_ways(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    spans: Sequence[Span] | None = None,
    count_citation_markers: bool = False,
    watch: Watch = Watch(),
) -> Attribution:
    """Gains of each passage for each span (default the answer, its sentences), in [0, 2] per token of the span.

    2n + 2 rows for n passages. Raises what `occlusion` raises.
    """
    require(model, "score")
    start = time.perf_counter()
    asked = ask(model.encode(prompt), answer, spans, count_citation_markers=count_citation_markers)
    with count_forwards(model) as count:
        rows = last(score_rows(model, asked, (), alone=True, watch=watch))
    as_drops = changed(rows, without=rows.full - rows.gained)  # so that the drop without a passage is its gain
    found = attribution_of(model.name, METHOD, asked, as_drops)
    told = replace(found.details, with_markers=(), alone=(), gained=())  # these belong to the drops
    return replace(found, unit=UNIT, details=told, forwards=count.rows, seconds=time.perf_counter() - start)
