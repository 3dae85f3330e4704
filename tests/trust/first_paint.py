"""`python -m tests.trust.first_paint`: how long a warm server keeps a reader waiting, in a real Chromium.

Counted from the start of the navigation, by the page itself: the first contentful paint, and the moment when what the
reader came for stands there (the Question box on Ask, the title elsewhere). Each page is opened in a browser that
has nothing of it stored, and once more as a reload. One JSON line says the medians and the slowest of each, seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.trust.prepared import prepared_folder

PAGES = ("", "corpora", "attribution", "refinement", "facts", "steps", "cases", "compare", "evaluate", "settings")
CAME_FOR = {"": "textarea[aria-label=Question]"}
TITLE = "[data-testid=stMain] h1"
# Looked at before every frame: an element is there when it has a size and the frame that holds it is drawn.
OBSERVER = """sought => {
  const look = () => {
    const found = document.querySelector(sought);
    if (found && found.offsetHeight) requestAnimationFrame(() => { window.stoodAt = performance.now(); });
    else requestAnimationFrame(look);
  };
  look();
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def seconds(page: Any) -> tuple[float, float]:
    """First contentful paint and the moment of what the reader came for, once both have been."""
    page.wait_for_function(f"window.stoodAt && {PAINT}")
    return page.evaluate(PAINT) / 1000, page.evaluate("window.stoodAt") / 1000


def opened(browser: Any, url: str, path: str) -> Iterator[tuple[str, float, float]]:
    """One page, first with nothing stored and then again: (how, paint, there)."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.add_init_script(f"({OBSERVER})({json.dumps(CAME_FOR.get(path, TITLE))})")
    page.goto(f"{url}/{path}", wait_until="commit")
    yield "fresh", *seconds(page)
    page.reload(wait_until="commit")
    yield "again", *seconds(page)
    context.close()


def first_paint(prepared: Path, times: int) -> dict[str, Any]:
    """Every page `times` times, after one visit that nobody counts."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGUMENTS, CHROMIUM, App

    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shutil.copytree(prepared, Path(folder) / "home")
        app = App(Path(folder) / "home", Path(folder) / "log.txt")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            for turn in range(times + 1):
                for path in PAGES:
                    for how, paint, there in opened(browser, app.url, path):
                        if turn:
                            found.setdefault(f"paint, {how}", []).append(paint)
                            found.setdefault(f"there, {how}", []).append(there)
        finally:
            browser.close()
            app.stop()
    return {
        "loads": times * len(PAGES),
        "median": {name: round(statistics.median(values), 2) for name, values in found.items()},
        "slowest": {name: round(max(values), 2) for name, values in found.items()},
    }


def main() -> None:
    """Print the summary as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--prepared", type=Path, help="a data folder with the sample corpora (default: made)")
    asked = parser.parse_args()
    with prepared_folder(asked.prepared) as prepared:
        print(json.dumps(first_paint(prepared, asked.times)))


if __name__ == "__main__":
    main()
