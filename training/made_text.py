"""Write text from public passages with a model: python -m training.made_text --data DIR --model NAME --out FOLDER.

It writes statements that a passage supports, contradicts or leaves open (claims.jsonl, read by `verifier_pairs`), and
questions that one of its sentences answers (questions.jsonl, read by `adapter_data`). These are a model's drafts, not
gold: a statement's kind is the requested one, and the verifier's teacher labels it again. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from engine.core.text import content_words
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Page, pages_of

CLAIMED = ("nq_gold_passage", "hotpotqa_100")
ASKED = ("nq_gold_passage",)
CLAIMS = (
    "Passage on {title}:\n{text}\n\nWrite three statements of one sentence each, so that each is understood without "
    "the passage.\nTRUE: {true}\nFALSE: a statement that the passage proves wrong, which a careless reader would "
    "believe\nOPEN: a statement on the same subject that may be true or not, since the passage does not tell"
)
TRUE = (
    "a statement that the passage proves, in other words than the passage",
    "a conclusion that follows from what the passage says",
    "a general statement that the passage bears out",
)
SHOWN = (
    CLAIMS.format(
        title="Lake Varn",
        text="The dam at Lake Varn was finished in 1931, two years late. It lowered the price of current for the mills "
        "by half, and the fishermen of Ostra lost their nets.",
        true=TRUE[0],
    ),
    "TRUE: Mills paid far less for electricity once the Lake Varn dam was built.\n"
    "FALSE: The dam at Lake Varn was completed ahead of schedule.\n"
    "OPEN: The fishermen of Ostra were paid for the nets that the Lake Varn dam cost them.",
)
QUESTION = "Sentence from a page on {title}:\n{text}\n\nWrite one question that this sentence answers."
SHOWN_QUESTION = (
    QUESTION.format(title="Lake Varn", text="The dam was finished in 1931, two years late, by the firm of Ida Holm."),
    "Who built the dam at Lake Varn?",
)
KINDS = {"TRUE": SUPPORTIVE, "FALSE": EDITING, "OPEN": IRRELEVANT}
_LINE = re.compile(r"^\W*(TRUE|FALSE|OPEN)\W*:\W*(.+?)\**\s*$", re.MULTILINE)
_ASKED = re.compile(r"^(?:Question:)?\s*([A-Z][^?\n]+\?)")
_TOLD = re.compile(r"\b(?:sentence|passage|text|page|mentioned|described|author)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """A statement, its passage, and the requested kind."""

    claim: str
    evidence: str
    label: int


@dataclass(frozen=True)
class Asked:
    """A question and the sentence of a page that answers it."""

    question: str
    title: str
    sentence: str


def windows(pages: Sequence[Page], rng: Random) -> Iterator[tuple[str, str]]:
    """Yield (title, one to four consecutive sentences) from page after page, endlessly."""
    while True:
        page = rng.choice(pages)
        size = rng.choices((1, 2, 3, 4), (3, 4, 3, 2))[0]
        first = rng.randrange(max(1, len(page.sentences) - size + 1))
        yield page.title, " ".join(page.sentences[first : first + size])


def claims_of(reply: str, evidence: str) -> list[Claim]:
    """The statements of a reply, at most one per kind."""
    found = {kind: " ".join(text.split()) for kind, text in _LINE.findall(reply)}
    return [
        Claim(text, evidence, KINDS[kind])
        for kind, text in found.items()
        if 4 <= len(text.split()) <= 45 and not _TOLD.search(text)
    ]


def asked_of(reply: str, title: str, sentence: str) -> Asked | None:
    """A reply's question, if someone who has not seen the sentence could ask it."""
    match = _ASKED.match(reply.strip())
    if not match or _TOLD.search(match[1]):
        return None
    words = content_words(match[1])
    if len(words) < 3 or len(match[1].split()) > 25 or not set(words) & set(content_words(f"{title} {sentence}")):
        return None
    return Asked(match[1], title, sentence)


class Drafter:
    """A causal model that answers many short prompts at once, by sampling."""

    def __init__(self, name: str, size: int = 128) -> None:
        """Load a writer by its name in the workbench; `size` prompts are answered together."""
        import torch

        from engine.models.registry import load_writer

        device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded: Any = load_writer(name, "bfloat16", device)
        self._module, self._tokenizer, self._size = loaded.module, loaded.tokenizer, size
        self._tokenizer.padding_side = "left"
        torch.manual_seed(1337)

    def replies(self, prompts: Sequence[str], shown: tuple[str, str], most: int) -> Iterator[str]:
        """A reply of at most `most` tokens to each prompt, in order; `shown` is a prompt with its reply."""
        import torch

        for first in range(0, len(prompts), self._size):
            before = [{"role": "user", "content": shown[0]}, {"role": "assistant", "content": shown[1]}]
            asked = prompts[first : first + self._size]
            turns = [[*before, {"role": "user", "content": prompt}] for prompt in asked]
            texts = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            inputs = self._tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
            inputs = inputs.to(self._module.device)
            with torch.inference_mode():
                ids = self._module.generate(
                    **inputs,
                    max_new_tokens=most,
                    do_sample=True,
                    temperature=0.8,
                    top_p=0.95,
                    pad_token_id=self._tokenizer.eos_token_id,
                )
            yield from self._tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
            print(f"{min(first + self._size, len(prompts))}/{len(prompts)}", flush=True)


def made_claims(drafter: Drafter, pages: Sequence[Page], count: int, rng: Random) -> Iterator[Claim]:
    """The statements written from `count` windows."""
    stream = windows(pages, rng)
    asked = [next(stream) for _ in range(count)]
    prompts = [CLAIMS.format(title=title, text=text, true=rng.choice(TRUE)) for title, text in asked]
    for (_, evidence), reply in zip(asked, drafter.replies(prompts, SHOWN, 90), strict=True):
        yield from claims_of(reply, evidence)


def made_questions(drafter: Drafter, pages: Sequence[Page], most: int, rng: Random) -> Iterator[Asked]:
    """Questions on at most `most` sentences of the pages."""
    places = [(page.title, sentence) for page in pages for sentence in page.sentences]
    taken = rng.sample(places, min(most, len(places)))
    prompts = [QUESTION.format(title=title, text=sentence) for title, sentence in taken]
    for place, reply in zip(taken, drafter.replies(prompts, SHOWN_QUESTION, 40), strict=True):
        asked = asked_of(reply, *place)
        if asked:
            yield asked


def write(found: Iterable[Any], file: Path) -> None:
    """Write one JSON object per line."""
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in found)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=12_000)
    parser.add_argument("--questions", type=int, default=14_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng, drafter = Random(1337), Drafter(options.model)
    questions = made_questions(drafter, pages_of(options.data, ASKED), options.questions, rng)
    if options.questions:
        write(questions, options.out / "questions.jsonl")
    if options.windows:
        write(made_claims(drafter, pages_of(options.data, CLAIMED), options.windows, rng), options.out / "claims.jsonl")


if __name__ == "__main__":
    main()
