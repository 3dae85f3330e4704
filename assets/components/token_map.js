// Passages as heatmaps of tokens, sentences or whole; a click in the answer recolours them here, without asking Python.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const figure = (size) => (size < 100 ? size.toPrecision(3) : Math.round(size).toLocaleString("en-US"));
const signed = (value) => (value >= 0 ? "+" : "-") + figure(Math.abs(value));

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".gw");
  root.replaceChildren();
  const [negative, positive] = data.colours;
  const colour = (share) => {
    const strength = (Math.min(1, Math.abs(share)) * data.strength).toFixed(1);
    return `color-mix(in srgb, ${share >= 0 ? positive : negative} ${strength}%, transparent)`;
  };

  const bar = make("div", "bar");
  const whole = make("button", "whole", "Whole answer");
  bar.append(whole);
  const sentenceButtons = data.sentences.map((_, index) => {
    const button = make("button", "sentence", "Sentence " + (index + 1));
    button.onclick = () => choose(1 + index);
    bar.append(button);
    return button;
  });
  const legend = make("span", "note");
  const scale = make("span", "scale");
  scale.style.background = `linear-gradient(to right, ${colour(-1)}, transparent, ${colour(1)})`;
  const low = make("span");
  const high = make("span");
  legend.append(low, scale, high);
  const alone = data.rows.length > 1 + data.sentences.length;
  bar.append(legend, make("span", "note", `Click a word of the answer to explain ${alone ? "that token" : "its sentence"}.`));
  whole.onclick = () => choose(0);
  let chosen = 0;
  let ranked = false;
  const sorting = make("button", "sorting", "Largest first");
  sorting.setAttribute("aria-pressed", "false");
  sorting.onclick = () => {
    ranked = !ranked;
    sorting.setAttribute("aria-pressed", String(ranked));
    choose(chosen);
  };
  bar.append(sorting);

  const answer = make("div", "answer");
  const tokens = data.answer.map((token) => {
    if (token.row === null) return make("span", "marker", token.text);
    // No <button>: as a box of its own it would indent a line by its leading space, and break words between tokens.
    const piece = make("span", "tok" + (token.differs ? " differs" : ""), token.text);
    piece.setAttribute("role", "button");
    piece.tabIndex = 0;
    if (!token.text.trim()) piece.setAttribute("aria-label", "white space");
    if (token.differs) piece.title = "The model itself would have chosen another token here.";
    piece.onclick = () => choose(token.row);
    piece.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(token.row);
    };
    return piece;
  });
  answer.append(...tokens);

  const grid = make("div", "grid");
  const cells = [];
  const sums = [];
  for (const [place, passage] of data.passages.entries()) {
    const card = make("section", "card");
    const head = make("div", "head");
    const sum = make("span", "sum");
    const track = make("div", "track");
    const fill = make("span", "fill");
    track.append(fill);
    head.append(make("b", "", passage.number), make("span", "title", passage.title), sum);
    const text = make("div", "text");
    const spans = passage.tokens.map((piece) => make("span", "", piece));
    text.append(...spans);
    text.onpointerover = (event) => name(event.target, spans.indexOf(event.target), place);
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", "Passage " + passage.number);
    card.append(head, track, text);
    grid.append(card);
    cells.push(spans);
    sums.push({ sum, fill, card });
  }

  // What a value says beside its size: nothing told apart from rounding, or no more than an unrelated passage does.
  const under = (value, row) => {
    const [numerical, placebo] = data.floors ? data.floors[row] : [null, null];
    if (numerical !== null && Math.abs(value) <= numerical) return "under the numerical floor: not told apart from rounding";
    if (placebo !== null && Math.abs(value) <= placebo) return "no larger than an unrelated passage";
    return "";
  };
  const total = (passage) => passage.reduce((sum, value) => sum + value, 0);

  // The number of a piece, written when the pointer reaches it: thousands of titles at every click would be felt.
  const name = (span, i, p) => {
    if (i < 0) return;
    const value = data.rows[chosen][p][i];
    const said = under(value, chosen);
    span.title = signed(value) + " " + data.unit + (said ? ", " + said : "");
  };

  const choose = (row) => {
    const values = data.rows[row];
    const totals = values.map(total);
    // Tokens of the prompt's own wording around a passage draw no text: they are in the sum, not on the scale.
    const drawn = values.map((passage, p) => passage.filter((_, i) => data.passages[p].tokens[i].trim()));
    const top = Math.max(0, ...drawn.flat().map(Math.abs));
    const widest = Math.max(0, ...totals.map(Math.abs));
    low.textContent = signed(-top);
    high.textContent = signed(top) + " " + data.unit;
    const order = totals.map((_, p) => p).sort((a, b) => totals[b] - totals[a]);
    values.forEach((passage, p) => {
      passage.forEach((value, i) => {
        const share = top ? value / top : 0;
        const plain = Math.abs(share) < 0.02 || under(value, row).startsWith("under");
        cells[p][i].style.background = plain ? "" : colour(share);
      });
      const said = passage.length === 1 ? under(totals[p], row) : "";
      const { sum, fill, card } = sums[p];
      sum.textContent = (passage.length === 1 ? "" : "sum ") + signed(totals[p]) + (said ? " ·" : "");
      sum.title = said;
      card.classList.toggle("faint", said !== "");
      const share = widest ? totals[p] / widest : 0;
      fill.style.left = (share >= 0 ? 50 : 50 + 50 * share) + "%";
      fill.style.width = 50 * Math.abs(share) + "%";
      fill.style.background = share >= 0 ? positive : negative;
      card.style.order = ranked ? order.indexOf(p) : p;
    });
    chosen = row;
    whole.setAttribute("aria-pressed", String(row === 0));
    sentenceButtons.forEach((button, index) => button.setAttribute("aria-pressed", String(row === 1 + index)));
    data.answer.forEach((token, index) => {
      const inSentence = row >= 1 && row <= data.sentences.length && token.sentence === row - 1;
      tokens[index].classList.toggle("chosen", token.row !== null && (token.row === row || inSentence));
    });
    root.dataset.row = row;
  };

  root.append(bar, answer, grid);
  choose(0);
  return () => root.replaceChildren();
}
