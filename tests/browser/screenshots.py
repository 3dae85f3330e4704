"""`make screenshots`: the pictures of README and tour, taken of the real app with the worked example open.

`GROUNDWORK_PREPARED` names a data folder with the sample corpora made before, which saves a minute.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from engine.cases.bundled import AUDITED, EXAMPLE
from tests.browser.conftest import ARGUMENTS, CHROMIUM, ROOT, App

IMAGES = ROOT / "docs" / "images"
WIDTH, COLOURS = 1280, 200
SHOTS = (  # name, page, tab, theme, height, scrolled to
    ("ask", "", "", "light", 900, ""),
    ("audit", f"audit?case={AUDITED}", "", "light", 900, "Answer"),
    ("corpora", "corpora", "", "light", 860, ""),
    ("occlusion", "attribution", "Occlusion", "light", 900, "Occlusion"),
    ("tokens", "attribution", "Tokens", "dark", 900, "Tokens"),
    ("faithfulness", "attribution", "Faithfulness", "light", 860, "Faithfulness"),
    ("refinement", "refinement", "Side by side", "light", 900, "Side by side"),
    ("facts", "facts", "", "light", 900, "Reviewer"),
    ("cases", "cases", "", "light", 900, ""),
)


DRAWN = """() => {
  const title = document.querySelector('[data-testid=stMain] h1');
  const busy = ['stStatusWidget', 'stSkeleton'].some(id => document.querySelector(`[data-testid=${id}]`));
  const reading = document.querySelector('[data-testid=stMain]')?.textContent.includes('corpora are being read');
  const drawn = title && title.textContent !== 'Groundwork' && !document.querySelector('[data-stale=true]');
  return drawn && !busy && !reading;
}"""  # the title is the project's own as long as the samples are being prepared


def settle(page: Page) -> None:
    """Wait until the page is drawn whole: nothing runs, nothing is stale, no placeholder is left."""
    for _ in range(2):
        page.wait_for_function(DRAWN)
        page.wait_for_timeout(1000)


def take(browser: Browser, url: str, shot: tuple[str, str, str, str, int, str]) -> bytes:
    """One picture: the page opened by its link, its tab chosen, scrolled to where it begins to matter."""
    _, where, tab, theme, height, anchor = shot
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=theme)
    page.set_default_timeout(180_000)
    page.goto(f"{url}/{where}" if "?" in where else f"{url}/{where}?case={EXAMPLE}")
    settle(page)
    if tab:
        page.get_by_role("tab", name=tab).click()
        settle(page)
    if anchor:
        place = page.get_by_role("tab", name=anchor) if tab else page.get_by_text(anchor, exact=True).first
        place.evaluate("element => element.scrollIntoView({block: 'start'})")
        page.locator("[data-testid=stMain]").evaluate("main => main.scrollBy(0, -70)")
        settle(page)
    page.mouse.move(WIDTH - 20, 300)  # onto the margin: a word under it would be underlined
    picture = page.screenshot()
    page.close()
    return picture


def report(browser: Browser, file: Path) -> bytes:
    """The first screen of the audited example's report."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
    page.goto(file.as_uri())
    picture = page.screenshot()
    page.close()
    return picture


def smaller(picture: bytes, path: Path) -> int:
    """Write a picture with few colours; return its size in bytes."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    # Two rounds of k-means give the large areas their own colour back, which the coverage alone rounds.
    few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path.stat().st_size


def prepared(folder: Path) -> Path:
    """A data folder with the sample corpora and the worked example."""
    made = os.environ.get("GROUNDWORK_PREPARED")
    home = folder / "home"
    if made:
        shutil.copytree(made, home)
    os.environ["GROUNDWORK_HOME"] = str(home)
    from engine.cases.bundled import take_in
    from engine.report.build import html_report
    from engine.workbench import Workbench

    workbench = Workbench()
    workbench.prepare_samples()
    take_in(workbench.cases)
    (folder / "report.html").write_text(html_report(*workbench.cases.load_whole(AUDITED)), encoding="utf-8")
    return home


def main() -> None:
    """Take every picture and say how large they are."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        app = App(prepared(Path(name)), Path(name) / "log.txt")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            sizes = {shot[0]: smaller(take(browser, app.url, shot), IMAGES / f"{shot[0]}.png") for shot in SHOTS}
            sizes["report"] = smaller(report(browser, Path(name) / "report.html"), IMAGES / "report.png")
        finally:
            browser.close()
            app.stop()
    print(", ".join(f"{name} {size / 1024:.0f} kB" for name, size in sizes.items()), f"in all {sum(sizes.values()):,}")


if __name__ == "__main__":
    main()
