"""Time how fast a click in the answer recolours the passages: python -m bench.recolour [--write].

The page's component is drawn in Chromium with random scores. A click is timed until the second frame after it, when
style, layout and paint are done. No model or server is involved. `--write` puts the section into bench/RESULTS.md.
"""

from __future__ import annotations

import os
import random
import statistics
from typing import Any

from bench.results import arguments, conditions, publish
from components.style import NEGATIVE, POSITIVE, SEQUENTIAL, STRENGTH, drawing

PASSAGES, TOKENS, ANSWER, SENTENCES = 15, 150, 48, 4
CLICKS = 20
CHROMIUM = "/usr/bin/chromium"

DRAW = """async ([source, style, data]) => {
  document.body.innerHTML = '<style></style><div id="root"><div class="gw"></div></div>';
  document.querySelector('style').textContent = style;
  const module = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
  module.default({ data, parentElement: document.getElementById('root') });
}"""
CLICK = """(index) => new Promise((done) => {
  const token = document.querySelectorAll('.tok')[index];
  const start = performance.now();
  token.click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""


def made_up(rng: random.Random) -> dict[str, Any]:
    """The component's data: one row for the answer, each sentence and each token."""
    rows = 1 + SENTENCES + ANSWER
    each = ANSWER // SENTENCES
    answer = [
        {"text": f" word{t}", "row": 1 + SENTENCES + t, "sentence": t // each, "differs": False, "asks": None}
        for t in range(ANSWER)
    ]
    values = [[[rng.gauss(0, 1) for _ in range(TOKENS)] for _ in range(PASSAGES)] for _ in range(rows)]
    return {
        "answer": answer,
        "sentences": list(range(1, 1 + SENTENCES)),
        "passages": [
            {"number": p + 1, "title": f"Passage {p + 1}", "tokens": [f" token{i}" for i in range(TOKENS)]}
            for p in range(PASSAGES)
        ],
        "rows": values,
        "sizes": [[[abs(value) for value in passage] for passage in row] for row in values],
        "hint": "",
        "unit": "logit",
        "colours": [NEGATIVE, POSITIVE, SEQUENTIAL],
        "strength": STRENGTH,
    }


def measure() -> tuple[list[float], float]:
    """Milliseconds from each click to its paint, and CPU milliseconds of the main thread per click."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.evaluate(DRAW, [drawing("token_map", "js"), drawing("token_map", "css"), made_up(random.Random(0))])
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = task_seconds(tools)
        times = [float(page.evaluate(CLICK, index)) for index in range(CLICKS)]
        own = 1000 * (task_seconds(tools) - before) / CLICKS
        browser.close()
    return times, own


def task_seconds(tools: Any) -> float:
    """CPU seconds of the main thread so far."""
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def main() -> None:
    """Measure, print, and save with --write."""
    options = arguments(__doc__)
    times, own = measure()
    line = f"- {own:.0f} ms of main-thread CPU time per click (aim: under 250 ms); until the second frame"
    line += f" after it {statistics.median(times):.0f} ms (median), {min(times):.0f} ms (shortest)"
    told = f"{PASSAGES} passages of {TOKENS} tokens, {CLICKS} clicks in Chromium. {conditions()}"
    told += f" Load average during the run: {os.getloadavg()[0]:.0f}."
    publish(options, "recolour", "Recolouring the passages after a click in the answer", told, [line])


if __name__ == "__main__":
    main()
