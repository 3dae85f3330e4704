"""The colour scales hold for readers who see fewer colours, and text on them stays readable (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from components.figures import COLOURS
from components.style import NEGATIVE, POSITIVE, SEQUENTIAL, STRENGTH, diverging, stylesheet

ROOT = Path(__file__).resolve().parent.parent.parent
THEMES = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

# Machado, Oliveira and Fernandes 2009, severity 1.0: linear RGB as a reader of that kind sees it.
SIGHT = {
    "usual": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def srgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def drawn(style: str, background: str) -> np.ndarray:
    """sRGB of a `color-mix(in srgb, COLOUR SHARE%, transparent)` on a background."""
    colour, share = re.fullmatch(r"color-mix\(in srgb, (#\w+) ([\d.]+)%, transparent\)", style).groups()
    alpha = float(share) / 100
    return alpha * srgb(colour) + (1 - alpha) * srgb(background)


def lab(rgb: np.ndarray, sight: str = "usual") -> np.ndarray:
    """CIELAB, D65, as seen."""
    ratios = TO_XYZ @ np.clip(SIGHT[sight] @ linear(rgb), 0, 1) / WHITE
    f = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    light, dark = sorted((float((TO_XYZ @ linear(c))[1]) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def teal(share):
    """A share in [0, 1] as token_map.js draws it."""
    return f"color-mix(in srgb, {SEQUENTIAL} {share * STRENGTH:.1f}%, transparent)"


def test_the_sums_agree_with_values_known_from_elsewhere():
    assert contrast(srgb("#000000"), srgb("#ffffff")) == pytest.approx(21, abs=0.01)
    assert contrast(srgb("#767676"), srgb("#ffffff")) == pytest.approx(4.54, abs=0.01)
    assert lab(srgb("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("share", [-1.0, 1.0])
def test_text_on_the_strongest_tint_is_readable(theme, share):
    tints = [diverging(share), teal(abs(share))]
    text = srgb(THEMES[theme]["textColor"])
    assert min(contrast(drawn(t, THEMES[theme]["backgroundColor"]), text) for t in tints) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_the_two_sides_of_the_diverging_scale_stay_apart(theme, sight):
    background = THEMES[theme]["backgroundColor"]
    for share in SHARES[1:]:
        below, above = (lab(drawn(diverging(s), background), sight) for s in (-share, share))
        assert np.linalg.norm(below - above) > 40 * share  # 2.3 is just noticeable


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scale", [teal, diverging, lambda s: diverging(-s)])
def test_more_is_always_seen_as_more(theme, sight, scale):
    background = THEMES[theme]["backgroundColor"]
    paper = lab(srgb(background), sight)
    distances = [np.linalg.norm(lab(drawn(scale(share), background), sight) - paper) for share in SHARES]
    assert all(after > before + 2.3 for before, after in pairwise(distances))


def test_the_style_sheet_and_the_plots_share_one_palette():
    found = dict(re.findall(r"--gw-(\w+): (#\w+);", stylesheet("page.css")))
    assert (found["low"], found["warn"], found["good"]) == (NEGATIVE, POSITIVE, SEQUENTIAL)
    assert 0 < STRENGTH <= 100


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_lines_and_edges_are_seen(theme):
    background = srgb(THEMES[theme]["backgroundColor"])
    colours = {*re.findall(r"--gw-(?!mark)\w+: (#\w+);", stylesheet("page.css")), *COLOURS}
    assert {colour for colour in colours if contrast(srgb(colour), background) < 3} == set()  # WCAG 1.4.11


def test_components_name_colours_and_do_not_mix_their_own():
    for path in sorted((ROOT / "assets" / "components").glob("*.css")):
        own = re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r":root \{.*?\}|light-dark\(.*?\)", "", path.read_text()))
        assert own == [], path.name


def test_a_minus_sign_is_the_hyphen_that_numbers_are_stored_with():
    """Tables, metrics and downloads write a hyphen. With a second sign in use, a search would miss half of them."""
    shown = [path for folder in ("pages", "components", "engine") for path in (ROOT / folder).rglob("*.py")]
    shown += [path for path in (ROOT / "assets").rglob("*") if path.suffix in (".js", ".css")]
    assert shown
    assert [str(path.relative_to(ROOT)) for path in shown if "\N{MINUS SIGN}" in path.read_text(encoding="utf-8")] == []
