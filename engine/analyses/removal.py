"""The answer without some of its passages: written again, and how much less likely the old one is (RAGViz, section 3).

Nothing is kept in the case: it is a look, and a signed-off case can be looked at, too.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from engine.answer.citations import annotate, renumbered
from engine.answer.write import Write
from engine.core.errors import CannotDo, InputError, PromptTooLong
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Attribution, Case, Value
from engine.methods.occlusion import occlusion
from engine.methods.subject import subject
from engine.models.protocols import LanguageModel


class Removal(Value, frozen=True):
    """A case's answer written and scored again without the passages `left_out`.

    `answer` is the new one by `writer`, its citations numbered as in the case. `drop` has one source, the passages left
    out together: what they add to the old answer's log-probability; None where no model could score, and `why`.
    """

    left_out: tuple[int, ...]
    writer: str
    answer: Answer
    drop: Attribution | None = None
    why: str = ""


def removal(
    case: Case,
    left_out: Collection[int],
    write: Write,
    scorer: LanguageModel,
    settings: Settings,
    watch: Watch = Watch(),
) -> Removal:
    """Write from the other passages, score the old answer without these; `InputError` for none and for all of them."""
    numbers = range(1, len(case.passages) + 1)
    rest = [number for number in numbers if number not in left_out]
    gone = tuple(number for number in numbers if number in left_out)
    if not gone or not rest:
        raise InputError("Leave out at least one passage, and keep at least one.")
    watch.step("writing without them")
    written = write(case.question, [case.passages[number - 1] for number in rest], watch)
    style = settings.prompting.citations
    answer = annotate(Answer(text=renumbered(written.answer.text, rest)), len(case.passages), style)
    answer = answer if not written.answer.refused else written.answer
    watch.step("scoring the answer without them")
    removed = Removal(left_out=gone, writer=written.stamp.model, answer=answer)
    try:
        prompt, scored, _ = subject(case, scorer, settings)
        how = settings.occlusion
        drop = occlusion(scorer, prompt, scored, sources=[gone], floors=False, settings=how, watch=watch)
        return replace(removed, drop=drop)
    except (CannotDo, PromptTooLong) as error:
        return replace(removed, why=str(error))
