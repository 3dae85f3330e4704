"""Measure the main-thread work of each click: python -m bench.clicks [--prepared DIR] [--write].

The worked example is open in a real Chromium. Each control that only changes the view is clicked once, on every page
and tab: tabs, folds, segmented controls, radio buttons, switches, sentences, facts and passages. A click is measured
until the page is drawn again. The unit is CPU time of the main thread (Chromium's TaskDuration in thread ticks), so
other work on the machine hardly counts.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.results import arguments, conditions, publish, table
from engine.cases.bundled import EXAMPLE, take_in
from engine.cases.store import CaseStore
from tests.trust.prepared import prepared_folder

PAGES = {
    "ask": "",
    **{
        name: name
        for name in (
            "audit",
            "corpora",
            "attribution",
            "refinement",
            "facts",
            "steps",
            "cases",
            "compare",
            "evaluate",
            "settings",
        )
    },
}
MAIN = "[data-testid=stMain] "
TABS = MAIN + "[role=tab]"
CONTROLS = {  # what only changes the view
    "fold": "details > summary",
    "segment": "[data-testid=stButtonGroup] button",
    "radio": "[data-testid=stRadio] label",
    "switch": "[data-testid=stCheckbox] label",
    "sentence": ".gw :is(.s, .sent:not(.unasked))",
    "fact": ".gw button.fact",
    "passage": ".gw :is(button.head, button.cite)",
}
STARTS_WORK = ("Without passages",)  # tabs whose controls do more than change the view
ABOUT = (
    "CPU time of Chromium's main thread from a click until the page is drawn again, with the worked example open. Tabs,"
    " folds, segmented controls, radio buttons, switches, sentences, facts and passages, at most three of each per tab."
)
EACH = 3  # controls of a kind that are clicked on a tab, at most
DRAWN = """() => {
  const title = document.querySelector('[data-testid=stMain] h1');
  const busy = document.querySelector('[data-testid=stStatusWidget], [data-testid=stSkeleton], [data-stale=true]');
  const still = document.querySelector('.stApp')?.getAttribute('data-test-script-state') === 'notRunning';
  return title && title.textContent !== 'Groundwork' && still && !busy;
}"""
PAUSE = 700  # ms: a rerun that a click asks for begins well before


def settle(page: Any) -> None:
    """Wait until the page is fully drawn and stays so."""
    for _ in range(2):
        page.wait_for_timeout(PAUSE)
        page.wait_for_function(DRAWN, polling=200)


def work(client: Any) -> float:
    """Milliseconds of main-thread work so far."""
    metrics = {metric["name"]: metric["value"] for metric in client.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def clicked(page: Any, client: Any, control: Any) -> float | None:
    """Milliseconds of work of one click until the page is drawn again; None if the control is gone or hidden."""
    if not control.count() or not control.is_visible() or not control.is_enabled():
        return None
    control.scroll_into_view_if_needed()
    before = work(client)
    control.click()
    settle(page)
    return work(client) - before


def clicks(page: Any, client: Any) -> Iterator[tuple[str, float]]:
    """Click everything on a page; yield (control, milliseconds)."""
    tabs = page.locator(TABS)
    for index in range(max(1, tabs.count())):
        tab = ""
        if tabs.count():
            tab = f"tab {tabs.nth(index).inner_text()}"
            took = clicked(page, client, tabs.nth(index)) if index else None
            if took is not None:
                yield tab, took
        if tab.removeprefix("tab ") in STARTS_WORK:
            continue
        for kind, selector in CONTROLS.items():
            controls = page.locator(MAIN + selector)
            places = [i for i in range(controls.count()) if controls.nth(i).is_visible()][:EACH]
            for place in places:
                took = clicked(page, client, controls.nth(place))
                if took is not None:
                    yield f"{tab} {kind} {place + 1}".strip(), took


def measured(prepared: Path, names: list[str], each_click: bool = False) -> dict[str, Any]:
    """The figures of each page. With `each_click`, each click is also printed to standard error."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGUMENTS, CHROMIUM, App

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder) / "home"
        shutil.copytree(prepared, home)
        take_in(CaseStore(home / "cases.sqlite"))
        app = App(home, Path(folder) / "log.txt")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            for name in names:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.set_default_timeout(120_000)
                page.goto(f"{app.url}/{PAGES[name]}?case={EXAMPLE}")
                settle(page)
                client = page.context.new_cdp_session(page)
                client.send("Performance.enable", {"timeDomain": "threadTicks"})
                each = []
                for control, took in clicks(page, client):
                    each.append((control, took))
                    if each_click:
                        print(f"{name}: {control}: {took:.0f} ms", file=sys.stderr, flush=True)
                elements = page.evaluate("document.querySelectorAll('*').length")
                page.close()
                found[name] = {"clicks": len(each), "elements": elements, **summary(each)}
        finally:
            browser.close()
            app.stop()
    return found


def summary(each: list[tuple[str, float]]) -> dict[str, Any]:
    """Median and slowest click of a page; empty if the page has no control.

    >>> summary([("tab Tokens", 40.2), ("fold 1", 20.0), ("fold 2", 30.0)])
    {'median': 30, 'slowest': 40, 'control': 'tab Tokens'}
    """
    if not each:
        return {}
    control, most = max(each, key=lambda one: one[1])
    return {"median": round(statistics.median(ms for _, ms in each)), "slowest": round(most), "control": control}


def main() -> None:
    """Print a row per page, and save them with --write."""
    asked = arguments(
        __doc__,
        prepared={"type": Path, "help": "a data folder with the sample corpora (default: made)"},
        pages={"nargs": "*", "default": list(PAGES), "choices": list(PAGES)},
        each=(False, "every click to standard error"),
    )
    with prepared_folder(asked.prepared) as prepared:
        found = measured(prepared, asked.pages, asked.each)
    rows = (
        f"{name} | {one['elements']:,} | {one['clicks']} | {one.get('median', '')} | {one.get('slowest', '')}"
        f" | {one.get('control', '')}"
        for name, one in found.items()
    )
    told = f"{ABOUT}\n\n{conditions()} The machine was shared: load average {os.getloadavg()[0]:.0f}."
    lines = table("page | elements | clicks | median, ms | slowest, ms | slowest control", rows)
    publish(asked, "clicks", "Main-thread work per click", told, lines)


if __name__ == "__main__":
    main()
