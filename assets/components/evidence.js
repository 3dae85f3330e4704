// An answer next to its passages: a citation opens the passage that it names. Text is only ever textContent.
const HINTS = {
  retrieved: "Search score: cosine to the question, plus up to 0.2 for shared words",
  "chunk set": "The re-ranker's score of the passage's chunk set, the same for all its passages",
  place: "Position of the passage in its document",
};

const meter = (label, from, to, value, kind) => {
  const bar = make("div", "bar " + kind);
  const fill = make("i");
  fill.style.left = 100 * from + "%";
  fill.style.width = 100 * (to - from) + "%";
  bar.append(fill);
  const name = make("span", "", label);
  name.title = HINTS[label] || "";
  return [name, bar, make("span", "value", value)];
};

const card = (passage, open, step, source) => {
  const element = make("section", "card");
  element.dataset.number = passage.number;
  const head = make("button", "head");
  head.setAttribute("aria-expanded", "false");
  head.append(make("span", "number", passage.number), make("span", "title", passage.title));
  if (passage.cited) head.append(make("span", "cited", passage.cited));
  head.onclick = () => open(passage.number, { toggle: true });
  head.onkeydown = (event) => step(event, element);
  const meta = make("div", "meta");
  for (const score of passage.scores) meta.append(...meter(score.name, 0, score.share, score.text, "score"));
  meta.append(...meter("place", passage.place[0], passage.place[1], passage.place_text, "place"));
  const text = make("div", "text");
  const first = passage.pieces.findIndex((piece) => piece.mark); // a closed card begins at what is quoted
  passage.pieces.forEach((piece, i) => {
    if (i && i === first) text.append(make("span", "gap", "… "));
    text.append(make(piece.mark ? "mark" : "span", i < first ? "before" : "", piece.text));
  });
  const more = make("button", "more", "Open in its document");
  more.onclick = () => source(passage.number);
  element.append(head, meta, text, more);
  return element;
};

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".gw");
  root.tell = setTriggerValue;
  const drawn = JSON.stringify({ ...data, opened: null });
  if (root.drawn === drawn) return; // only the choice came back
  root.drawn = drawn;
  root.replaceChildren();
  const left = make("div");
  const right = make("div");
  const list = make("div", "list");
  const answer = make("div", "answer" + (data.refused ? " refused" : ""));
  let current = null;

  const show = (number, scroll) => {
    current = number || null;
    for (const item of list.children) {
      const chosen = Number(item.dataset.number) === current;
      item.classList.toggle("open", chosen);
      item.querySelector(".head").setAttribute("aria-expanded", String(chosen));
      if (!chosen || !scroll) continue;
      if (left.offsetLeft === right.offsetLeft) item.scrollIntoView({ behavior: glide() }); // one below the other
      else list.scrollTo({ top: item.offsetTop - list.offsetTop - 4, behavior: glide() });
    }
    for (const item of answer.querySelectorAll("button.cite"))
      item.setAttribute("aria-pressed", String(Number(item.dataset.number) === current));
  };
  const open = (number, { scroll = false, toggle = false }) => {
    show(toggle && current === number ? null : number, scroll);
    root.tell("passage", current || 0);
  };
  const step = (event, from) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = by > 0 ? from.nextElementSibling : from.previousElementSibling;
    if (!next) return;
    next.querySelector(".head").focus();
    open(Number(next.dataset.number), { scroll: true });
  };

  const written = (piece) => {
    if (piece.number === undefined) return make("span", piece.style, piece.text);
    const button = make("button", "cite" + (piece.valid ? "" : " invalid"), piece.number);
    button.dataset.number = piece.number;
    button.title = piece.title;
    button.setAttribute("aria-label", piece.title);
    if (piece.valid) button.onclick = () => open(piece.number, { scroll: true });
    return button;
  };
  for (const piece of data.answer) {
    if (piece.row) {
      drawRow(answer.appendChild(make("span", piece.style)), piece.row, written);
      continue;
    }
    const [, mark, rest] = (piece.text ?? "").match(/^([.,;:!?)]*)([^]*)$/);
    if (mark && answer.lastChild) { // a citation and the punctuation after it stay on one line
      const held = make("span", "held");
      held.append(answer.lastChild, mark);
      answer.append(held);
    }
    answer.append(written(mark ? { ...piece, text: rest } : piece));
  }
  left.append(make("h3", "", data.answer_title), answer);
  for (const passage of data.passages) list.append(card(passage, open, step, (number) => root.tell("source", number)));
  right.append(make("h3", "", data.passages_title), list);
  // Before anything is written there are the passages alone.
  if (data.answer.length) root.append(left);
  root.append(right);
  if (data.opened) show(data.opened, true);
}
