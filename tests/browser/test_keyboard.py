"""Without a mouse: Tab comes to all that the first page asks for, each stop can be seen, and Enter does it."""

from __future__ import annotations

from playwright.sync_api import expect

PAGES = (
    "Ask",
    "Audit",
    "Corpora",
    "Facts",
    "Attribution",
    "Refinement",
    "Steps",
    "Cases",
    "Compare",
    "Evaluate",
    "Settings",
)
MOST = 60  # stops that are looked at
# What has the focus, also inside a component of ours.
FOCUSED = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  return e;
}"""
NAME = """e => {
  const said = e.getAttribute('aria-label') || [...(e.labels || [])].map(l => l.innerText).join(' ') || e.innerText;
  return (said || '').trim().split('\\n')[0];
}"""
# What a focus can change: the element's own look, and that of the frame which a field stands in.
DRAWN = """e => {
  const said = [];
  for (let i = 0; e && i < 4; i++, e = e.parentElement) {
    const s = getComputedStyle(e);
    said.push(s.outlineStyle === 'none' ? '' : s.outline, s.boxShadow, s.borderColor, s.backgroundColor);
  }
  return said.join('|');
}"""


def still(page):
    page.wait_for_function("document.getAnimations().every(a => a.playState !== 'running')")


def tabbed(page):
    """Each stop of the Tab key in order: tag, name, and whether it looks otherwise with the focus than without."""
    stops, left = [], None
    for _ in range(MOST):
        page.keyboard.press("Tab")
        still(page)
        here = page.evaluate_handle(FOCUSED).as_element()
        if left is not None:
            stops.append((*left[0], left[1] != left[2].evaluate(DRAWN)))
        if here.evaluate("e => e === document.body"):
            return stops
        left = (here.evaluate("e => e.tagName"), here.evaluate(NAME)), here.evaluate(DRAWN), here
    return stops


def open_ask(app, page):
    page.goto(app.url)
    expect(page.locator(".answer")).to_contain_text("water")
    expect(page.locator('.stApp[data-test-script-state="notRunning"]')).to_be_visible()


def test_tab_comes_to_every_page_the_case_picker_and_the_question_and_shows_where_it_is(app, page):
    open_ask(app, page)
    stops = tabbed(page)
    reached = [(tag, name) for tag, name, _ in stops]
    assert [name for tag, name in reached if tag == "A" and name in PAGES] == list(PAGES)
    fields = [(tag, name) for tag, name in reached if tag in ("INPUT", "TEXTAREA")]
    assert [name for _, name in fields] == ["Open case", "Corpus", "Question", "Method", "Written by"]
    assert reached.index(("BUTTON", "Ask")) > reached.index(("TEXTAREA", "Question"))
    assert any(name.startswith("Open passage") for _, name in reached)
    assert [name for _, name, seen in stops if not seen] == []


def test_a_question_is_asked_and_a_page_opened_without_a_mouse(app, page):
    open_ask(app, page)
    page.get_by_label("Question", exact=True).focus()
    page.keyboard.type("Which solvent extracts caffeine from the tea?")
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('button')?.innerText.startsWith('Ask')"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Which solvent extracts caffeine from the tea?")).to_be_visible()
    page.get_by_role("link", name="Cases").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()
