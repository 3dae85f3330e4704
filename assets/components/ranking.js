// A row per retrieved passage, in the order of the search or of the re-ranking; rows slide from one to the other.
// Text is only ever textContent.
const PAUSE = 700; // milliseconds for which the order of the search is seen before the rows move
const SLIDE = 600;

const line = (row) => {
  const item = make("li", row.given ? "row" : "row left-out");
  const place = make("span", "place", row.after ? `${row.before} → ${row.after}` : String(row.before));
  place.title = row.after ? `Place ${row.before} by the search, ${row.after} after re-ranking` : `Place ${row.before} by the search`;
  if (row.after && row.after < row.before) place.classList.add("up");
  const words = make("div", "words");
  const title = make("div", "title", row.title);
  if (row.given) title.append(make("span", "given", `passage ${row.given}`));
  words.append(title, make("div", "text", row.text));
  const scores = make("div", "scores");
  for (const score of row.scores) {
    const bar = make("div", "bar");
    const fill = make("i");
    fill.style.width = 100 * score.share + "%";
    bar.append(fill);
    scores.append(make("span", "", score.name), bar, make("span", "value", score.text));
  }
  item.append(place, words, scores);
  return item;
};

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".gw");
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  clearTimeout(root.later);
  const ranked = data.rows.some((row) => row.after);
  const list = make("ol", "list");
  const rows = data.rows.map((row) => ({ row, item: line(row) }));
  const toggle = make("button", "", "Order of the search");
  let searched = !ranked || data.moving;
  const arrange = (slide) => {
    const from = rows.map(({ item }) => item.getBoundingClientRect().top);
    const place = ({ row }) => (searched ? row.before : row.after ?? rows.length + row.before);
    list.append(...[...rows].sort((a, b) => place(a) - place(b)).map(({ item }) => item));
    toggle.setAttribute("aria-pressed", String(searched));
    if (!slide || still()) return;
    rows.forEach(({ item }, i) => {
      const by = from[i] - item.getBoundingClientRect().top;
      if (by) item.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: SLIDE, easing: "ease-in-out" });
    });
  };
  toggle.onclick = () => { searched = !searched; arrange(true); };
  root.replaceChildren(...(ranked ? [toggle] : []), list);
  arrange(false);
  if (ranked && data.moving) root.later = setTimeout(() => { searched = false; arrange(true); }, still() ? 0 : PAUSE);
}
