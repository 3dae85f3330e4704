"""Write text from public passages with a model: python -m training.made_text --data DIR --model NAME --out FOLDER.

It writes statements that a passage supports, contradicts or leaves open (claims.jsonl, read by `verifier_pairs`), and
questions that one of its sentences answers (questions.jsonl, read by `adapter_data`). With --paragraphs it first writes
paragraphs of other fields and forms than the public passages have, and half of the statements are about these. All are
a model's drafts, not gold: a statement's kind is the requested one, and the verifier's teacher labels it again. Needs a
GPU.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from engine.core.text import content_words, sentences
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Page, pages_of

CLAIMED = ("nq_gold_passage", "hotpotqa_100", "xquad_en")
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
    "a short plain statement, as people say it in talk, that the passage proves",
    "a headline that the passage proves",
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
FORMS = (
    "the abstract of a study",
    "a newspaper",
    "a textbook",
    "a handbook of instructions",
    "a report of an agency",
    "a company's annual report",
    "the minutes of a meeting",
    "a web page for the public",
    "a court's ruling",
    "a log of an incident",
    "an interview",
    "a regulation",
)
FIELDS = (
    *("medicine", "infectious diseases", "vaccines", "nutrition", "pharmacy", "nursing", "psychology", "genetics"),
    *("climate", "weather", "ecology", "oceans", "agriculture", "forestry", "energy", "geology", "astronomy"),
    *("physics", "chemistry", "materials", "biology", "neuroscience", "statistics", "software", "networks"),
    *("machine learning", "railways", "aviation", "shipping", "roads", "construction", "manufacturing", "mining"),
    *("waste", "water supply", "banking", "insurance", "taxes", "trade", "prices", "labour", "housing", "pensions"),
    *("procurement", "auditing", "law", "elections", "police", "migration", "schools", "universities", "museums"),
    *("history", "archaeology", "music", "film", "literature", "sport", "cooking", "fashion", "tourism"),
    *("languages", "religion", "architecture"),
)
PARAGRAPH = (
    "Write one paragraph of five or six sentences as it could be found in {form} on {field}. It speaks of: {words}. "
    "Be particular: who or what, how much, when, where, under which conditions, and what was not found or not done. "
    "Write the paragraph alone."
)
SHOWN_PARAGRAPH = (
    PARAGRAPH.format(form="a report of an agency", field="fisheries", words="mills, nets"),
    "The survey covered 14 landing places on Lake Varn from March to October 1932. After the dam was closed, the "
    "catch of whitefish fell from 310 to 95 tonnes a year, while perch was not affected. Nets with a mesh under 40 mm "
    "were torn in most of the mill races. The agency paid for 212 of the 540 nets that owners had reported. Whether "
    "the fish ladder helps cannot be said yet, because counting began only in August. Owners who fish above the mills "
    "have been asked to use traps until the spring.",
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


def paragraph_prompts(pages: Sequence[Page], rng: Random) -> Iterator[tuple[str, str]]:
    """Yield (field, prompt for a paragraph), endlessly; each speaks of two words of the public pages."""
    while True:
        field, page = rng.choice(FIELDS), rng.choice(pages)
        words = [word for word in content_words(rng.choice(page.sentences)) if word.isalpha() and len(word) > 3]
        if len(words) >= 2:
            yield field, PARAGRAPH.format(form=rng.choice(FORMS), field=field, words=", ".join(rng.sample(words, 2)))


def page_of(field: str, reply: str) -> Page | None:
    """A reply's paragraph as a page, without a last sentence that was cut off; None if little is left."""
    text = " ".join(reply.split())
    parts = [part for part in (text[a:b].strip() for a, b in sentences(text)) if 6 <= len(part.split()) <= 45]
    kept = tuple(part for part in parts if part.endswith("."))
    return Page(field, kept, ()) if len(kept) >= 2 else None


@dataclass(frozen=True)
class Asked:
    """A question and the sentence of a page that answers it."""

    question: str
    title: str
    sentence: str


Window = tuple[Page, int, int]


def window_of(page: Page, rng: Random) -> Window:
    """A page with the first and the end of one to four consecutive sentences of it."""
    size = rng.choices((1, 2, 3, 4), (3, 4, 3, 2))[0]
    first = rng.randrange(max(1, len(page.sentences) - size + 1))
    return page, first, first + size


def elsewhere(claim: Claim, window: Window, rng: Random) -> Iterator[Claim]:
    """The claim against another sentence or two of its page (0.3 of the time) or against more of it (0.08)."""
    page, first, end = window
    rest = [i for i in range(len(page.sentences)) if not first <= i < end]
    if rest and rng.random() < 0.3:
        place = rng.choice(rest)
        both = place + 1 in rest and rng.random() < 0.5
        yield replace(claim, evidence=" ".join(page.sentences[place : place + 1 + both]), label=IRRELEVANT)
    elif rest and rng.random() < 0.12:
        more = [page.sentences[i] for i in rng.sample(rest, min(len(rest), rng.choice((1, 2))))]
        parts = [claim.evidence, *more]
        rng.shuffle(parts)
        yield replace(claim, evidence=" ".join(parts))


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


def made_pages(drafter: Drafter, pages: Sequence[Page], count: int, rng: Random) -> list[Page]:
    """`count` paragraphs, less those of which nothing is usable."""
    asked = list(islice(paragraph_prompts(pages, rng), count))
    replies = drafter.replies([prompt for _, prompt in asked], SHOWN_PARAGRAPH, 200)
    found = (page_of(field, reply) for (field, _), reply in zip(asked, replies, strict=True))
    return [page for page in found if page]


def made_claims(drafter: Drafter, pages: Sequence[Page], count: int, rng: Random) -> Iterator[Claim]:
    """The statements written from `count` windows, some also against other sentences of the page."""
    asked = [window_of(rng.choice(pages), rng) for _ in range(count)]
    texts = [" ".join(page.sentences[first:end]) for page, first, end in asked]
    prompts = [
        CLAIMS.format(title=page.title, text=text, true=rng.choice(TRUE))
        for (page, _, _), text in zip(asked, texts, strict=True)
    ]
    for window, text, reply in zip(asked, texts, drafter.replies(prompts, SHOWN, 96), strict=True):
        for claim in claims_of(reply, text):
            yield claim
            yield from elsewhere(claim, window, rng)


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


def more_pages(file: Path) -> list[Page]:
    """Pages of a file with one object per line: title and sentences."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [Page(row["title"], tuple(row["sentences"]), ()) for row in rows]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=26_000)
    parser.add_argument("--questions", type=int, default=14_000)
    parser.add_argument("--paragraphs", type=int, default=4_600)
    parser.add_argument("--pages", type=Path, help="more text: one JSON object per line, with title and sentences")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng, drafter = Random(1337), Drafter(options.model)
    if options.questions:
        asked = made_questions(drafter, pages_of(options.data, ASKED), options.questions, rng)
        write(asked, options.out / "questions.jsonl")
    if options.windows:
        pages = pages_of(options.data, CLAIMED) + (more_pages(options.pages) if options.pages else [])
        own = made_pages(drafter, pages, options.paragraphs, rng)
        half = options.windows // 2 if own else 0
        found = chain(made_claims(drafter, own, half, rng), made_claims(drafter, pages, options.windows - half, rng))
        write(found, options.out / "claims.jsonl")


if __name__ == "__main__":
    main()
