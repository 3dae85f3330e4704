"""Checks of a model's prompts, scores and gradients, on which every attribution depends.

Run once a model; the table stands in Settings and in every report that used the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import GroundworkError
from engine.core.files import home, read_json, save_json
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Prompt, Segment, Value, sha256
from engine.models.chat import as_messages, chat_pieces, fitting_turns
from engine.models.protocols import LanguageModel, TokenPrompt, Writer

TOLERANCE = {"float32": 1e-3}  # nats a token
HALF_TOLERANCE = 0.5  # nats a token; bfloat16 and float16 rows move by up to 0.35 with their batch
LONG = 300  # tokens
SHORT = Decoding(max_new_tokens=24)
TEXTS = (
    "Hanna Lind built the bridge over the Åse in 1874 — 12.5 m long.",
    "  The <s> flood of 1931 took “two arches” away: [INST] 👩‍👧 e\u0301.\n",
    "It was repaired within a year.",
)


class SelfTestCheck(Value, frozen=True):
    """One line of the self-test; `figure` is what was measured (nats, counts), None where there is no number."""

    name: str
    passed: bool
    detail: str
    figure: float | None = None


def probe_prompt(count: int = len(TEXTS)) -> Prompt:
    """A prompt with a system segment and `count` passages that try the tokenizer."""
    passages = tuple(
        Segment(kind="passage", text=f"\n\nPassage {n}: {TEXTS[(n - 1) % len(TEXTS)]}", number=n)
        for n in range(1, count + 1)
    )
    system = Segment(kind="system", role="system", text="Cite passages.")
    instruction = Segment(kind="instruction", text="Answer from the passages.")
    return Prompt(
        segments=(system, instruction, *passages, Segment(kind="question", text="\n\nWho built it?\nAnswer:"))
    )


def self_test(model: Writer, watch: Watch = Watch()) -> tuple[SelfTestCheck, ...]:
    """Every check that applies to the model, with the reason where one fails; raise `Cancelled` between two."""
    prompt, planned = probe_prompt(), _planned(model)
    found: list[SelfTestCheck] = []
    for place, (name, check) in enumerate(planned, start=1):
        watch.step(f"check {name}", place, len(planned))
        try:
            found += list(check(model, prompt))
        except (GroundworkError, RuntimeError, ValueError, TypeError, IndexError) as error:
            found.append(SelfTestCheck(name, False, f"{type(error).__name__}: {error}"))
    return (*found, *_not_offered(model))


Check = Callable[[Any, Prompt], Iterator[SelfTestCheck]]


def _planned(model: Writer) -> list[tuple[str, Check]]:
    if not isinstance(model, LanguageModel):
        return [("writes text", _writes)]
    planned: list[tuple[str, Check]] = [("byte-exact segments", _segments), ("removal", _removal), ("scores", _scores)]
    if hasattr(model, "module"):
        planned.insert(0, ("chat template round trip", _template))
    if model.can.gradients:
        planned.append(("gradients finite", _gradients))
    return planned


def _not_offered(model: Writer) -> tuple[SelfTestCheck, ...]:
    """An ability that the model does not claim is reported, not failed."""
    words = {"score": "scores of a given text", "gradients": "gradients"}
    missing = [word for name, word in words.items() if not getattr(model.can, name)]
    detail = f"{', '.join(missing)}: not offered. {model.can.why_not}".strip()
    return (SelfTestCheck("not offered", True, detail),) if missing else ()


def _writes(model: Writer, prompt: Prompt) -> Iterator[SelfTestCheck]:
    answer = model.generate(prompt, SHORT)
    yield SelfTestCheck("writes text", bool(answer.text.strip()), "characters written", len(answer.text))


def _template(model: Any, prompt: Prompt) -> Iterator[SelfTestCheck]:
    """The prompt reads back as the tokenizer's own rendering of the same conversation does."""
    from rapidfuzz.distance import Hamming

    tokenizer = model.tokenizer
    read = _read_back(tokenizer, model.encode(prompt).ids)
    how = "with its chat template" if tokenizer.chat_template else "without a chat template"
    off = min(Hamming.distance(read, wanted) for wanted in _renderings(tokenizer, prompt))
    yield SelfTestCheck("chat template round trip", off == 0, f"{how}: characters that differ", off)


def _renderings(tokenizer: Any, prompt: Prompt) -> tuple[str, ...]:
    """The conversation rendered and tokenised in one go, as the tokenizer does it for everyone, and read back.

    Without a template also the text as it is: some tokenizers put a space after each special token of a whole text.
    """
    if tokenizer.chat_template:
        messages = as_messages(prompt, fitting_turns(tokenizer, prompt)[0])
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    else:
        text = "".join(piece.text for piece in chat_pieces(tokenizer, prompt))
    whole = _read_back(tokenizer, tokenizer(text, add_special_tokens=False)["input_ids"])
    return (whole,) if tokenizer.chat_template else (whole, text)


def _read_back(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text


def _segments(model: Any, prompt: Prompt) -> Iterator[SelfTestCheck]:
    """Each segment's ids spell its text; a scripted model is judged by its spans alone."""
    coded = model.encode(prompt)
    tiled = [start for _, start, _ in coded.spans] == [0, *(end for _, _, end in coded.spans)][:-1]
    wrong = 0
    if hasattr(model, "decode"):
        for segment, start, end in coded.spans:
            wrong += segment >= 0 and model.decode(coded.ids[start:end]) != prompt.segments[segment].text
    detail = "segments whose tokens do not match their text" if tiled else "the spans leave gaps"
    yield SelfTestCheck("byte-exact segments", tiled and not wrong, detail, wrong)


def _removal(model: LanguageModel, prompt: Prompt) -> Iterator[SelfTestCheck]:
    coded = model.encode(prompt)
    sets: tuple[set[int], ...] = ({1}, {2}, {3}, {1, 3}, {1, 2, 3})
    wrong = sum(coded.without(numbers).ids != model.encode(prompt.without(numbers)).ids for numbers in sets)
    detail = f"of {len(sets)} removals whose ids differ from the shorter prompt's"
    yield SelfTestCheck("removal equals re-tokenised removal", wrong == 0, detail, wrong)


def _scores(model: LanguageModel, prompt: Prompt) -> Iterator[SelfTestCheck]:
    answer = model.generate(prompt, SHORT)
    written = [token.logprob for token in answer.tokens]
    ids = [token.id for token in answer.tokens]
    if not ids or None in written:
        yield SelfTestCheck("scores", False, "the model wrote nothing to score")
        return
    coded = model.encode(prompt)
    own = model.score([coded], ids)[0]
    yield _within("score equals generation's log-probabilities", model, np.abs(own - np.array(written, float)))
    yield _floor("batch row equals lone row", model, coded, ids)
    # The same over `LONG` tokens, where scoring may read shared beginnings once; nothing where that does not fit.
    room = getattr(model, "window", 0) - len(ids)
    long = next((c for n in range(4, 100) if len((c := model.encode(probe_prompt(n))).ids) >= LONG), None)
    if long is not None and len(long.ids) <= room:
        yield _floor("long batch row equals lone row", model, long, ids)


def _floor(name: str, model: LanguageModel, coded: TokenPrompt, ids: list[int]) -> SelfTestCheck:
    """The full row and those without each of the last three passages, alone and together: the numerical floor."""
    last = [number for number in coded.numbers if number is not None][-3:]
    rows = [coded, *(coded.without({number}) for number in last)]
    alone = np.concatenate([model.score([row], ids) for row in rows])
    return _within(name, model, np.abs(model.score(rows, ids) - alone))


def _within(name: str, model: Any, differences: np.ndarray) -> SelfTestCheck:
    largest = float(differences.max())
    limit = TOLERANCE.get(getattr(model, "dtype", "float32"), HALF_TOLERANCE)
    passed = bool(np.isfinite(largest)) and largest <= limit
    return SelfTestCheck(name, passed, f"largest difference of a token, nats (limit {limit:g})", largest)


def _gradients(model: Any, prompt: Prompt) -> Iterator[SelfTestCheck]:
    """Gradient of the last position's best logit with respect to the input embeddings."""
    import torch

    ids = torch.tensor([model.encode(prompt).ids], device=model.device)
    with model.hold() as module, torch.enable_grad():
        embedded = module.get_input_embeddings()(ids).detach().requires_grad_(True)
        best = module(inputs_embeds=embedded, use_cache=False).logits[0, -1].float().max()
        (gradient,) = torch.autograd.grad(best, embedded)
    norm = float(gradient.float().norm())
    passed = bool(torch.isfinite(gradient).all()) and norm > 0
    yield SelfTestCheck("gradients finite", passed, "norm of the gradient at the input embeddings", norm)


# Kept in the data folder by name, revision and dtype: other weights, other record.


def checks_of(model: Writer, watch: Watch = Watch()) -> tuple[SelfTestCheck, ...]:
    """The model's record, or a new test of it, kept. A served model has no revision and is tested each time.

    Raises `Cancelled` where `watch` asks to stop; nothing of half a test is kept.
    """
    name, revision, dtype = identity(model)
    known = remembered(name, revision, dtype) if revision else None
    if known is not None:
        return known
    checks = self_test(model, watch)
    remember(model, checks)
    return checks


def remember(model: Writer, checks: tuple[SelfTestCheck, ...]) -> None:
    """Keep a test, in place of an older one of the same model; `StorageError` where it cannot be written."""
    save_json(_path(*identity(model)), checks, "The self-test")


def remembered(name: str, revision: str, dtype: str) -> tuple[SelfTestCheck, ...] | None:
    """The record of that model, e.g. of a stamp; None where there is none or it cannot be read."""
    # One that is damaged, or of an older version, is tested again.
    return read_json(_path(name, revision, dtype), tuple[SelfTestCheck, ...], None, "The self-test", "")[0]


def identity(model: Any) -> tuple[str, str, str]:
    """(name, revision, dtype), as stamps carry them."""
    return model.name, getattr(model, "revision", ""), getattr(model, "dtype", "")


def _path(*parts: str) -> Path:
    return home() / "self_tests" / f"{sha256(chr(0).join(parts))[:24]}.json"
