"""Measure the effect of each guard on the verifier: python -m bench.guards --data DIR [--write].

Pairs of claim and evidence: VitaminC dev (DIR/vitaminc/dev.jsonl), one sentence of evidence per claim, under its
page's title; COVID-Fact (DIR/covidfact), where one word of a claim was changed; FEVER symmetric (DIR/fever_symmetric),
whose claims share their words with evidence of either label; HealthVer (DIR/healthver); claims of four sets that say an
order of events, as they are and turned round; sentences of CLAP NQ passages with two names exchanged, or a role in
another's place; sentences of the bank investigation's drafts against the passages they cite; facts that the rules read
from a sentence of a CLAP NQ passage, the same altered, and the same against the closest passage of another page.
The embedded verifier judges each pair, those facts as sentences: by the evidence, and by its sentence alone, too. Then
the guards run: all of them, all but each in turn, and none. The seed is fixed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.results import DATA, arguments, conditions, publish, read_lines, table
from bench.verifier import drafts
from engine.core.settings import Verification
from engine.core.text import sentences
from engine.english.parser import parse
from engine.english.statements import split
from engine.english.tree import has_child
from engine.english.words import LEAVE_OPEN
from engine.methods.are.anchor import anchors
from engine.methods.are.event_order import orders, turned
from engine.methods.are.guards import Read, verdicts_on, with_guards
from engine.methods.are.names import names
from engine.methods.are.tools import OfSentences
from engine.methods.are.values import Evidence, Ruling
from engine.models.alignment import clean
from engine.models.calibration import class_f1, macro_f1
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Entailment
from engine.models.verdicts import CLASSES
from engine.models.verifier import load_entailment
from training.verifier_data import pages_of
from training.verifier_edits import contradict

Row = dict[str, Any]
Labelled = tuple[str, Evidence, int]
ORDERED = [f"{name}.jsonl" for name in ("vitaminc/dev", "covidfact/verify", "healthver/verify", "climate_fever/verify")]
NAMES_EXCHANGED, OTHER_ROLES = "half of them with two names exchanged", "a role in another's place"
_VERB = re.compile(r" (?:(?:was|were|is|are) [a-z]+(?:ed|en) by|[a-z]+(?:ed|es|s)) ")  # between two names
ROLES = [
    *("president", "minister", "director", "manager", "chairman", "teacher", "doctor", "nurse", "engineer", "judge"),
    *("lawyer", "clerk", "auditor", "captain", "king", "queen", "prince", "governor", "senator", "mayor", "professor"),
    *("student", "author", "actor", "actress", "singer", "coach", "player", "soldier", "officer", "farmer", "driver"),
    *("priest", "bishop", "emperor", "secretary", "treasurer", "inspector", "accountant", "owner", "buyer", "seller"),
    *(
        "tenant",
        "landlord",
        "writer",
        "producer",
        "composer",
        "commander",
        "sheriff",
        "ambassador",
        "editor",
        "dentist",
    ),
]
OWN_FACTS = "facts of the passages' own sentences, half of them altered"
ELSEWHERE = "the same facts, against the closest passage of another page"
FACTS = (NAMES_EXCHANGED, OTHER_ROLES, OWN_FACTS, ELSEWHERE)
ON = Verification()
NONE = replace(
    ON,
    names_and_numbers=False,
    event_order=False,
    parties=False,
    anchored=False,
    roles=False,
    left_open=False,
    word_for_word=False,
)
SWITCHES = {
    "all guards": ON,
    "without names and numbers": replace(ON, names_and_numbers=False),
    "without order of events": replace(ON, event_order=False),
    "without parties": replace(ON, parties=False),
    "without anchored": replace(ON, anchored=False),
    "without roles": replace(ON, roles=False),
    "without left open": replace(ON, left_open=False),
    "without word for word": replace(ON, word_for_word=False),
    "without the sentence alone": replace(ON, sentence_alone=False),
    "no guard": NONE,
    "no guard, without the sentence alone": replace(NONE, sentence_alone=False),
}


def measured(pairs: Sequence[Labelled], verifier: Entailment, embedder: Embedder) -> list[Row]:
    """Macro-F1, F1 per class, the share of verdicts changed, and the share of supportive verdicts that are right.

    One row per switch. Supportive verdicts are counted apart by whether they are unsure.
    """
    labels = np.array([label for _, _, label in pairs])
    rows = []
    read = [Read(claim, claim, evidence, anchors(claim, [evidence])[0]) for claim, evidence, _ in pairs]
    asked, readings = [(one.fact, one) for one in read], {}
    for alone in (True, False):
        judged = verdicts_on(asked, verifier, replace(ON, sentence_alone=alone))
        readings[alone] = [Ruling.of(one, verifier) for one in judged]
    for name, settings in SWITCHES.items():
        rulings = readings[settings.sentence_alone]
        kept = with_guards(rulings, read, verifier, embedder, settings)
        called = np.array([CLASSES.index(ruling.verdict) for ruling in kept])  # type: ignore[arg-type]
        turned = sum(a.verdict != b.verdict for a, b in zip(kept, rulings, strict=True))
        row: Row = {"guards": name, "macro_f1": round(macro_f1(labels, called), 3)}
        row |= {"f1": [round(score, 3) for score in class_f1(labels, called)], "turned": round(turned / len(pairs), 3)}
        for name, unsure in (("sure", False), ("unsure", True)):
            right = [
                label == CLASSES.index("supportive")
                for ruling, label in zip(kept, labels, strict=True)
                if ruling.verdict == "supportive" and ruling.unsure == unsure
            ]
            row[name] = [int(sum(right)), len(right)]
        rows.append(row)
    return rows


def drawn(path: Path, count: int) -> list[Labelled]:
    """`count` pairs of claim, evidence (under its page's title, if known) and label; empty where the file is absent."""
    rows = _rows(path)
    chosen = random.Random(1337).sample(rows, min(count, len(rows)))
    return [
        (clean(r["claim"]), _evidence(clean(r["evidence"]), r.get("page", "")), CLASSES.index(r["label"]))
        for r in chosen
    ]


def turned_round(data: Path) -> list[Labelled]:
    """Supported claims with one word of order, whose evidence has one too: as they are, and turned round.

    From four sets below `data` that the verifier was not trained on.
    """
    pairs: list[Labelled] = []
    for name in ORDERED:
        for row in _rows(data / name):
            claim, found = row["claim"], orders(row["claim"])
            if row["label"] != "supportive" or len(found) != 1 or not orders(row["evidence"]):
                continue
            turn = claim[: found[0].start] + turned(claim, found[0]) + claim[found[0].end :]
            for label, said in (("supportive", claim), ("editing_required", turn)):
                pairs.append((clean(said), _evidence(clean(row["evidence"])), CLASSES.index(label)))
    return pairs


def stated_plainly(data: Path, most: int = 200) -> dict[str, list[Labelled]]:
    """Sentences of four sets below `data` whose main verb is after a modal or governs "to" and a verb, by what it does.

    "Left open": the sentence as it is, and with that verb in the past alone, which it does not bear out. "Another
    verb": with that verb in the past alone; mostly it bears it out ("began to"), but not always ("refused to").
    """
    found: dict[str, list[Labelled]] = {"left open, half of it stated plainly": [], "after another verb": []}
    texts = {row["evidence"] for name in ORDERED for row in _rows(data / name)}
    parts = [clean(text[a:b]) for text in sorted(texts) for a, b in sentences(text)]
    for said in random.Random(1337).sample(parts, len(parts)):
        plain, is_open = plainly(said) if len(said.split()) < 40 else ("", False)
        kind, label = list(found)[not is_open], "irrelevant" if is_open else "supportive"
        if plain and len(found[kind]) < most:
            as_it_is = [(said, _evidence(said), CLASSES.index("supportive"))] if is_open else []
            found[kind] += [*as_it_is, (plain, _evidence(said), CLASSES.index(label))]
    return found


def plainly(sentence: str) -> tuple[str, bool]:
    """The sentence with the verb after its modal, or after "to", in the past alone; and was it left open before.

    >>> plainly("It may rain soon."), plainly("Ann began to sing.")
    (('It rained soon.', True), ('Ann sang.', False))
    """
    from lemminflect import getInflection, getLemma

    root = next((t for t in parse(sentence) or () if t.head == t and t.pos_ in ("VERB", "AUX")), None)
    if root is None or any(c.dep_ in ("neg", "expl") for c in root.children):
        return "", False
    modal = next((c for c in root.children if c.tag_ == "MD" and c.lower_ in LEAVE_OPEN), None)
    verb = root if modal else next((c for c in root.children if c.dep_ == "xcomp" and c.tag_ in ("VB", "VBN")), None)
    to = next((c for c in verb.children if c.tag_ == "TO"), None) if verb is not None else None
    first = modal or next((c for c in root.lefts if c.dep_ in ("aux", "auxpass")), root)
    if verb is None or not (modal or to) or has_child(verb, "conj") or any(c.dep_ == "conj" for c in root.children):
        return "", False
    form = next((c for c in verb.lefts if c.dep_ in ("aux", "auxpass") and c.tag_ == "VB"), verb)
    past = next(iter(getInflection(form.lower_, "VBD")), "")
    text = f"{sentence[: first.idx]}{past}{sentence[form.idx + len(form) :]}"
    return text, bool(modal) or getLemma(root.lower_, upos="VERB")[0] in LEAVE_OPEN


def own_facts(data: Path, count: int = 120) -> list[Labelled]:
    """Facts that the rules read from a sentence of a CLAP NQ passage, against the passage: as they are, and altered.

    Numbers, dates, names and words are altered by code, as for the verifier's training on other passages.
    """
    rng = random.Random(1337)
    if not (data / "clapnq").exists():
        return []
    pairs: list[Labelled] = []
    for page in rng.sample(pages_of(data, ("clapnq",)), count):
        evidence = _evidence(" ".join(page.sentences), page.title)
        for fact in split(rng.choice(page.sentences)):
            pairs.append((fact, evidence, CLASSES.index("supportive")))
            altered = contradict(fact, rng, list(page.names))
            pairs += [(altered, evidence, CLASSES.index("editing_required"))] if altered else []
    return pairs


def of_another_page(data: Path, embedder: Embedder, most: int = 200) -> list[Labelled]:
    """The same facts as they are, each against the passage of another page that is closest to it in meaning."""
    facts = [(fact, own.title) for fact, own, label in own_facts(data) if CLASSES[label] == "supportive"][:most]
    if not facts:
        return []
    evidence = [_evidence(" ".join(page.sentences), page.title) for page in pages_of(data, ("clapnq",))]
    cosines = embedder.embed([fact for fact, _ in facts]) @ embedder.embed([one.text for one in evidence]).T
    for row, (_, title) in zip(cosines, facts, strict=True):
        row[[one.title == title for one in evidence]] = -1
    nearest = map(evidence.__getitem__, cosines.argmax(axis=1))
    return [(fact, one, CLASSES.index("irrelevant")) for (fact, _), one in zip(facts, nearest, strict=True)]


def exchanged_names(data: Path, most: int = 100) -> list[Labelled]:
    """Sentences of CLAP NQ with a verb between two names, against their passage: as they are, and with both exchanged.

    Names and verbs are found by their form, not by the parser that the guard reads with.
    """
    pairs: list[Labelled] = []
    for sentence, evidence in _own_sentences(data, random.Random(1337)):
        for (a, b, one), (c, d, other) in pairwise(names(sentence)):
            if len(pairs) < 2 * most and one != other and _VERB.fullmatch(sentence[b:c]):
                claim = sentence[:a] + other + sentence[b:c] + one + sentence[d:]
                pairs.append((sentence, evidence, CLASSES.index("supportive")))
                pairs.append((claim, evidence, CLASSES.index("editing_required")))
                break
    return pairs


def other_roles(data: Path, most: int = 150) -> list[Labelled]:
    """Sentences of CLAP NQ with a role ("the mayor") in whose place is another, which the passage does not have."""
    rng = random.Random(1337)
    said = re.compile(rf"\b(?:the|an?|its|their|his|her) ({'|'.join(ROLES)})\b")
    pairs: list[Labelled] = []
    for sentence, evidence in _own_sentences(data, rng):
        if (found := said.search(sentence)) and len(pairs) < most:
            new = rng.choice([role for role in ROLES if role not in evidence.text.lower()])
            claim = sentence[: found.start(1)] + new + sentence[found.end(1) :]
            pairs.append((claim, evidence, CLASSES.index("editing_required")))
    return pairs


def _own_sentences(data: Path, rng: random.Random) -> Iterator[tuple[str, Evidence]]:
    """The sentences of CLAP NQ's passages, in a random order of passages, each with its passage as evidence."""
    pages = pages_of(data, ("clapnq",)) if (data / "clapnq").exists() else []
    for page in rng.sample(pages, len(pages)):
        evidence = _evidence(" ".join(page.sentences), page.title)
        yield from ((sentence, evidence) for sentence in page.sentences)


def _rows(path: Path) -> list[dict[str, Any]]:
    return read_lines(path) if path.exists() else []


def _evidence(text: str, title: str = "") -> Evidence:
    return Evidence(text=text, title=title, source="case")


def rows(data: Path, count: int) -> Iterator[list[object]]:
    """The rows of the table: each set under each switch."""
    verifier, embedder = load_entailment(), load_embedder()
    sets = {
        "VitaminC dev": drawn(data / "vitaminc" / "dev.jsonl", count),
        "COVID-Fact": drawn(data / "covidfact" / "verify.jsonl", count),
        "FEVER symmetric": drawn(data / "fever_symmetric" / "verify.jsonl", count),
        "HealthVer": drawn(data / "healthver" / "verify.jsonl", count),
        "orders, half of them turned round": turned_round(data),
        **stated_plainly(data),
        NAMES_EXCHANGED: exchanged_names(data),
        OTHER_ROLES: other_roles(data),
        OWN_FACTS: own_facts(data),
        ELSEWHERE: of_another_page(data, embedder),
        "bank investigation, drafts": [(claim, _evidence(text), label) for claim, text, label in drafts()],
    }
    for name, pairs in sets.items():
        if not pairs:
            print(f"{name}: absent, skipped")
            continue
        reader = OfSentences(verifier) if name in FACTS else verifier
        for row in measured(pairs, reader, embedder):
            scores = " / ".join("-" if np.isnan(score) else str(score) for score in row["f1"])
            right = [f"{good} of {called}" for good, called in (row["sure"], row["unsure"])]
            yield [name, len(pairs), row["guards"], row["macro_f1"], scores, row["turned"], *right]


def main() -> None:
    """Measure, print each row, and save with --write."""
    asked = arguments(__doc__, data=DATA, pairs=(300, "of each public set, at most"))
    heads = (
        "set | pairs | guards | macro-F1 | F1 supportive / editing / irrelevant | verdicts turned"
        " | supportive and sure: right | supportive, unsure: right"
    )
    lines = table(heads, rows(asked.data, asked.pairs))
    publish(asked, "guards", "Guards on the verifier's verdicts", conditions(), lines)


if __name__ == "__main__":
    main()
