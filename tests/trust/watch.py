"""Detect traces of an attack in a browser: something that ran, was fetched, or covers the page."""

from __future__ import annotations

from urllib.parse import urlsplit

OWN = {"127.0.0.1", "localhost"}

# Elements that stand over the header's place and do not belong to it, and what is wider than the page.
LAYOUT = """() => {
  const found = [];
  const main = document.querySelector('[data-testid=stMain]') || document.documentElement;
  const over = main.scrollWidth - main.clientWidth;
  if (over > 1) found.push('page is ' + over + ' px too wide');
  const side = document.querySelector('[data-testid=stSidebarContent]');
  if (side && side.scrollWidth > side.clientWidth + 1) found.push('sidebar is too wide');
  const header = document.querySelector('[data-testid=stHeader]');
  if (header) {
    const box = header.getBoundingClientRect();
    for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
      const top = document.elementFromPoint(box.left + share * box.width, box.top + box.height / 2);
      const strange = top && !header.contains(top) && !top.contains(header);
      if (strange) found.push('over the header: ' + top.outerHTML.slice(0, 200));
    }
  }
  const never = '.attack-cover, [onerror], [onload], [ontoggle], iframe, object, base, meta[http-equiv=refresh]';
  for (const e of document.querySelectorAll(never)) found.push('element ' + e.outerHTML.slice(0, 200));
  // What leads elsewhere, in HTML or in a chart: a page, a report and their texts have no such link of their own.
  for (const e of document.querySelectorAll('a[*|href]')) {
    const to = new URL(e.href.baseVal ?? e.href, location);
    if (to.hostname !== location.hostname || !['http:', 'https:', 'file:'].includes(to.protocol))
      found.push('link ' + e.outerHTML.slice(0, 200));
  }
  for (const e of document.querySelectorAll('img[src], source, link[href], form[action]'))
    if (/attack\\.invalid/.test(e.outerHTML)) found.push('element ' + e.outerHTML.slice(0, 200));
  for (const e of document.querySelectorAll('.katex')) found.push('mathematics ' + e.outerHTML.slice(0, 200));
  return found;
}"""


class Watcher:
    """Watches a page from before its first request; `left_behind` returns an attack's traces."""

    def __init__(self, page) -> None:
        self.page = page
        self.elsewhere: list[str] = []
        self.dialogs: list[str] = []
        page.context.route("**/*", self._route)
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._note(request.url))
        page.on("websocket", lambda socket: self._note(socket.url))

    def _route(self, route) -> None:
        outside = urlsplit(route.request.url).hostname not in OWN and route.request.url.startswith("http")
        route.abort() if outside else route.continue_()

    def _dialog(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss", "ftp") and parts.hostname not in OWN:
            self.elsewhere.append(url)

    def left_behind(self) -> list[str]:
        """Everything that an attack has done to the page so far; an empty list where nothing."""
        ran = ["a script ran"] if self.page.evaluate("Boolean(window.attacked)") else []
        fetched = [f"asked {url}" for url in dict.fromkeys(self.elsewhere)]
        spoke = [f"dialog {text}" for text in self.dialogs]
        return [*ran, *fetched, *spoke, *self.page.evaluate(LAYOUT)]
