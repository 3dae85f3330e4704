"""BM25 over title and text with English stemming, by the library bm25s; one index a generation of a collection.

From `_KEPT_FROM` passages the index is kept beside its generation's files, written in bm25s's form batch by batch and
mapped instead of loaded; it is made again whenever it cannot be read.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from engine.core.files import let_go
from engine.core.text import content_words, stemmer, well_formed, words as word_spans
from engine.corpus.collection import embedding_text
from engine.corpus.store import Snapshot, generation_folder
from engine.english.parser import plain_words
from engine.models.protocols import Floats

log = logging.getLogger(__name__)
Places = NDArray[np.intp]
# Numbers whole ("section 3.1", "2,500"), and words of one letter ("vitamin C"), which the library leaves out
_WORD = r"(?u)\b\d+(?:[.,]\d+)*\b|(?<!['’])\b\w+\b"
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_READ = f"{_WORD} of well-formed text, without underscores and commas in {_THOUSANDS.pattern}"
_HOW: dict[str, Any] = {"stopwords": "en", "show_progress": False, "token_pattern": _WORD}
_K1, _B = 1.5, 0.75
_ROUNDING = 1e-4  # of sums of what words add
_LOOKED_UP = 4  # texts of a word that are added up in the time in which a text is looked up
_CLOSE = 0.8  # share of letters in which a mistyped word and the one meant agree, and their stems
_MOST_UNKNOWN = 5  # words of a question that are looked for
_MOST = "most.npy"  # the most that each word adds to a text
_WORDS = "words.txt"  # what a word was when the index was made: `_READ`
_PARTS = (("indices", np.int32), ("data", np.float32))
_COUNT = np.dtype([("text", "<i4"), ("word", "<i4"), ("times", "<i4")])
_NO_SPACES = "\u0e00"  # the first letter of Thai, after which come the scripts of East Asia
_AT_ONCE = 20_000  # texts read at a time
_KEPT_FROM = 5_000  # passages from which an index is worth keeping on the disk


def best_rows(scores: Floats, count: int) -> Places:
    """Places of the `count` highest scores, best first, ties in order; shape (min(count, n),)."""
    count = min(max(count, 1), len(scores))
    floor = np.partition(scores, len(scores) - count)[len(scores) - count]
    reaching = np.flatnonzero(scores >= floor)
    return reaching[np.argsort(-scores[reaching], kind="stable")][:count]


def _spelled(text: str) -> str:
    """`text` with one spelling of accents and of thousands (2,500 is 2500), and "co2_ppm" as two words."""
    return _THOUSANDS.sub(lambda number: number[0].replace(",", ""), well_formed(text)).replace("_", " ")


def _tokens(texts: list[str]) -> list[list[str]]:
    """The stems of each text's words, without stop words."""
    import bm25s

    found: list[list[str]] = bm25s.tokenize([*map(_spelled, texts)], **_HOW, stemmer=stemmer(), return_ids=False)
    return found


class Postings:
    """An index of words: each word's part names the texts that hold it, ascending, with what it adds to their scores.

    It is in memory (`of`), or bm25s's files, mapped (`load`), of which a question reads only its own words' parts.
    """

    def __init__(self, words: dict[str, int], parts: Mapping[str, Any], most: Floats) -> None:
        self._words, self._most = words, most
        self._texts, self._adds, self._starts = (parts[name] for name in ("indices", "data", "indptr"))
        self.size = int(parts["num_docs"])

    @classmethod
    def of(cls, texts: list[str]) -> Postings:
        """Index `texts` (k1 = 1.5, b = 0.75, Lucene's form: the library's defaults)."""
        import bm25s

        tokens = bm25s.tokenize([*map(_spelled, texts)], **_HOW, stemmer=stemmer())
        if not tokens.vocab:
            none: dict[str, Any] = {name: np.zeros(0, dtype=kind) for name, kind in _PARTS}
            return cls({}, {**none, "indptr": np.zeros(1, dtype=np.int64), "num_docs": len(texts)}, none["data"])
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        most = np.maximum.reduceat(np.append(index.scores["data"], 0), index.scores["indptr"][:-1])
        return cls(index.vocab_dict, index.scores, most)

    @classmethod
    def load(cls, place: Path) -> Postings:
        """Map what `write_postings` wrote; raise `OSError`, `ValueError` or `KeyError` where it is damaged."""
        import bm25s

        index, most = bm25s.BM25.load(str(place), mmap=True), np.load(place / _MOST, allow_pickle=False)
        words, starts = index.vocab_dict, index.scores["indptr"]
        if (place / _WORDS).read_text(encoding="utf-8") != _READ:
            raise ValueError("it was made of other words")
        if not len(most) + 1 == len(starts) == len(words) + 1 or len(index.scores["indices"]) != starts[-1]:
            raise ValueError("its files do not match")
        return cls(words, index.scores, most)

    def scores(self, question: str, rows: Places | None = None) -> Floats:
        """One score per text, 0 and up, shape (n,); with `rows` of those texts alone."""
        if rows is not None:
            return self._sums(self._asked(question), rows)
        found = np.zeros(self.size, dtype=np.float32)
        for word in self._asked(question):
            texts, adds = self._part(word)
            found[texts] += adds
        return found

    def best(self, question: str, count: int) -> Places:
        """The rows of the `count` best texts, ties in order; where fewer have a word of it, the first ones with them.

        Words are taken in the order of how much they can add (Turtle and Flood, 1995). Once those left cannot
        together lift a text into the `count` best, they are looked up only in texts that are still in question, as
        soon as these are few next to the texts that hold the word.
        """
        asked = self._asked(question)
        words = sorted(asked, key=lambda word: -self._most[word])
        left = [*np.cumsum(self._most[words][::-1], dtype=float)[::-1].tolist(), 0.0]  # what the words from each on add
        sums, floor, lowest, taken = np.zeros(self.size, dtype=np.float32), 0.0, 0.0, 0
        leaders: Places = np.zeros(0, dtype=np.intp)
        while taken < len(words):
            least = floor - left[taken] - _ROUNDING
            start, end = self._starts[words[taken] : words[taken] + 2]
            if least > 0 and _LOOKED_UP * np.count_nonzero(sums >= least) < end - start:
                break
            texts, adds = self._part(words[taken])
            places = texts.astype(np.intp)
            raised = sums[places] + adds
            sums[places] = raised
            taken += 1
            if len(ahead := np.flatnonzero(raised >= lowest)):
                leaders = np.union1d(leaders, places[ahead[best_rows(raised[ahead], count)]])
                leaders = leaders[best_rows(sums[leaders], count)]
            if len(leaders) == count:  # scored in full: the sooner the floor is high, the fewer texts are looked at
                lowest = float(sums[leaders].min())
                floor = max(floor, float(self._sums(asked, leaders).min()))
        rows: Places = np.flatnonzero(sums >= max(floor - left[taken] - _ROUNDING, float(np.finfo(np.float32).tiny)))
        reached = sums[rows]
        for number in range(taken, len(words)):
            reached += self._adds_to(words[number], rows)
            still = reached >= floor - left[number + 1] - _ROUNDING
            rows, reached = rows[still], reached[still]
        if len(rows) < count:
            rows = np.union1d(rows, np.arange(min(count, self.size)))
        return rows[best_rows(self._sums(asked, rows), count)]

    def has(self, word: str) -> bool:
        """Whether some text has each part of a word; a stop word counts as there."""
        return all(token in self._words for token in _tokens([word])[0])

    def nearest(self, word: str) -> tuple[str, int] | None:
        """The word, as its stem, that is spelled most like this one, and the first text with it; None if none is close.

        Only words of letters are compared (another number is another thing), with those of the same first letter,
        which is seldom mistyped: a vocabulary of a million takes a third of a second.
        """
        stem = "".join(_tokens([word])[0])
        if not word.isalpha() or not stem:
            return None
        alike = [w for w in self._words if abs(len(w) - len(stem)) <= 2 and w[:1] == stem[0] and w.isalpha()]
        if not (found := get_close_matches(stem, alike, 1, _CLOSE)):
            return None
        return found[0], int(self._part(self._words[found[0]])[0][0])

    def _asked(self, question: str) -> list[int]:
        """The numbers of the question's words that some text has, each as often as it is asked."""
        return [self._words[token] for token in _tokens([question])[0] if token in self._words]

    def _part(self, word: int) -> tuple[NDArray[np.int32], Floats]:
        """The texts that hold a word, ascending, and what it adds to each."""
        part = slice(int(self._starts[word]), int(self._starts[word + 1]))
        return np.asarray(self._texts[part]), np.asarray(self._adds[part])

    def _sums(self, words: list[int], rows: Places) -> Floats:
        found = np.zeros(len(rows), dtype=np.float32)
        for word in words:
            found += self._adds_to(word, rows)
        return found

    def _adds_to(self, word: int, rows: NDArray[Any]) -> Floats:
        texts, adds = self._part(word)
        place = np.minimum(np.searchsorted(texts, rows.astype(texts.dtype)), len(texts) - 1)
        return np.where(texts[place] == rows, adds[place], np.float32(0))


def write_postings(place: Path, texts: Iterable[str], size: int) -> None:
    """Write the index of `size` texts, read once, in bm25s's form and to its scores (k1 = 1.5, b = 0.75, Lucene's)."""
    import bm25s

    place.mkdir(parents=True, exist_ok=True)
    words: dict[str, int] = {}
    lengths = np.zeros(size, dtype=np.int32)
    held = np.zeros(0, dtype=np.int64)
    with (place / "counts.tmp").open("wb") as file:
        done, coming = 0, iter(texts)
        while batch := list(islice(coming, _AT_ONCE)):
            counts = _counts(batch, words, done, lengths)
            held = np.bincount(counts["word"], minlength=len(words)) + np.pad(held, (0, len(words) - len(held)))
            counts.tofile(file)
            done += len(batch)
    starts = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
    weight = np.log(1 + (size - held + 0.5) / (held + 0.5)).astype(np.float32)
    most = np.zeros(len(words), dtype=np.float32)
    into = {name: open_memmap(place / f"{name}.csc.index.npy", "w+", kind, (int(starts[-1]),)) for name, kind in _PARTS}
    free, mean = starts[:-1].copy(), max(float(lengths.mean()), 1e-9)
    with (place / "counts.tmp").open("rb") as file:
        while len(counts := np.fromfile(file, _COUNT, _AT_ONCE * 64)):
            counts = counts[np.argsort(counts["word"], kind="stable")]
            word, times = counts["word"], counts["times"].astype(np.float32)
            added = np.bincount(word, minlength=len(words))
            first = np.cumsum(added) - added
            at = free[word] + np.arange(len(word)) - first[word]
            adds = weight[word] * (times / (_K1 * (1 - _B + _B * lengths[counts["text"]] / mean) + times))
            into["indices"][at], into["data"][at] = counts["text"], adds
            np.maximum.at(most, word, adds)
            free += added
            let_go(*into.values())
    (place / "counts.tmp").unlink()
    for part in into.values():
        part.flush()
    np.save(place / "indptr.csc.index.npy", starts)
    np.save(place / _MOST, most)
    (place / _WORDS).write_text(_READ, encoding="utf-8")
    (place / "vocab.index.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    about = {"k1": _K1, "b": _B, "delta": 0.5, "method": "lucene", "idf_method": "lucene", "dtype": "float32"}
    about |= {"int_dtype": "int32", "num_docs": size, "version": bm25s.__version__, "backend": "numpy"}
    (place / "params.index.json").write_text(json.dumps(about), encoding="utf-8")


def _counts(batch: list[str], words: dict[str, int], first: int, lengths: NDArray[np.int32]) -> NDArray[Any]:
    """How often each text of a batch has each word; new words join `words`, and `lengths` is filled in."""
    found = _tokens(batch)
    sizes = np.array([len(tokens) for tokens in found], dtype=np.int32)
    lengths[first : first + len(batch)] = sizes
    word = np.fromiter((words.setdefault(t, len(words)) for tokens in found for t in tokens), np.int64, sizes.sum())
    pairs, times = np.unique(np.repeat(np.arange(len(batch)), sizes) * (len(words) + 1) + word, return_counts=True)
    counts = np.empty(len(pairs), dtype=_COUNT)
    counts["text"], counts["word"] = np.divmod(pairs, len(words) + 1)
    counts["text"] += first
    counts["times"] = times
    return counts


_INDEXES: dict[Path, tuple[Snapshot, Postings]] = {}


def index_of(folder: Path, snapshot: Snapshot) -> Postings:
    """The index of a snapshot, the latest one of each collection kept open."""
    known = _INDEXES.get(folder)
    if known is not None and known[0] is snapshot:
        return known[1]
    texts = map(embedding_text, snapshot.passages)
    index = Postings.of(list(texts)) if len(snapshot.passages) < _KEPT_FROM else _mapped(folder, snapshot)
    _INDEXES[folder] = (snapshot, index)
    return index


def _mapped(folder: Path, snapshot: Snapshot) -> Postings:
    """The postings kept with the generation, written if there are none that fit; in memory where the disk is full."""
    place, size = generation_folder(folder, snapshot.manifest.generation) / "bm25", len(snapshot.passages)
    try:
        found = Postings.load(place)
        if found.size == size:
            return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if place.is_dir():
            log.warning("The stored word index cannot be read (%s) and is rebuilt.", error)
    draft = place.with_name("bm25.new")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        write_postings(draft, map(embedding_text, snapshot.passages), size)
        shutil.rmtree(place, ignore_errors=True)
        draft.replace(place)
    except (OSError, ValueError) as error:  # a full disk, or texts without a word
        log.warning("The word index was not saved (%s); it is held in memory.", error)
        shutil.rmtree(draft, ignore_errors=True)
        return Postings.of([embedding_text(p) for p in snapshot.passages])
    return Postings.load(place)


def unknown_words(question: str, folder: Path, snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """The first content words of a question that no document has, each with the nearest word that one has, or "".

    Scripts without spaces between words are left out: their words are not told apart here. So are verbs, adjectives and
    adverbs in English: documents answer with others than those of the question ("How much", "let").
    """
    index, question = index_of(folder, snapshot), well_formed(question)
    asked = dict.fromkeys(question[start:end] for start, end in word_spans(question))
    unknown = [w for w in asked if content_words(w) and max(w) < _NO_SPACES and not index.has(w)]
    if unknown:
        plain = plain_words(question)
        unknown = [word for word in unknown if word not in plain]
    return tuple((word, _nearest(word, index, snapshot)) for word in unknown[:_MOST_UNKNOWN])


def _nearest(word: str, index: Postings, snapshot: Snapshot) -> str:
    """The nearest word as a document writes it; "" where only its stem is near."""
    if (near := index.nearest(word)) is None:
        return ""
    stem, row = near
    text = embedding_text(snapshot.passages[row])
    spoken = [text[start:end] for start, end in word_spans(text)]
    forms = [w.lower() for w in spoken if _tokens([w]) == [[stem]] and content_words(w)]
    return next(iter(get_close_matches(word.lower(), forms, 1, _CLOSE)), "")
