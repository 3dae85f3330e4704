// Passages as heatmaps of words, sentences or whole. A click in the answer recolours them here; only a row that has not been
// computed is asked of Python.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const percent = (share) => (share >= 0.0995 ? Math.round(100 * share) : (100 * share).toFixed(share >= 0.00995 ? 1 : 2)) + "%";
const ROBUST = 0.99; // the scale ends here: one extreme word would drain the others of colour
const robust = (values) => {
  const sizes = values.filter((value) => value > 0).sort((a, b) => a - b);
  return sizes.length ? sizes[Math.floor(ROBUST * (sizes.length - 1))] : 0;
};
const figure = (size) => (size < 100 ? size.toPrecision(3) : Math.round(size).toLocaleString("en-US"));
const signed = (value) => (value >= 0 ? "+" : "-") + figure(Math.abs(value));

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".gw");
  root.replaceChildren();
  const [negative, positive, sequential] = data.colours;
  const tint = (hue, share) => `color-mix(in srgb, ${hue} ${(Math.min(1, share) * data.strength).toFixed(1)}%, transparent)`;
  // `sizes` are sums of |relevance|: drawn as shares of the row's total unless the sign is asked for.
  let signs = !data.sizes;
  let own = false;
  const colour = (share) => (signs ? tint(share >= 0 ? positive : negative, Math.abs(share)) : tint(sequential, share));
  const shares = (data.sizes || []).map((row) => {
    const whole = row.flat().reduce((sum, value) => sum + value, 0);
    return row.map((passage) => passage.map((value) => (whole ? value / whole : 0)));
  });
  const shown = (row) => (signs ? data.rows : shares)[row];
  // Pieces of the prompt's own wording around a passage draw no text: they are in the sum, not on the scale.
  const drawn = (row) => shown(row).flatMap((passage, p) => passage.filter((_, i) => data.passages[p].tokens[i].trim()).map(Math.abs));
  const tops = {};
  const top = (row) => {
    if (!data.sizes) return Math.max(0, ...drawn(row));
    return (tops[`${signs} ${own ? row : "all"}`] ??= robust(own ? drawn(row) : data.rows.flatMap((_, r) => drawn(r))));
  };

  const bar = make("div", "bar");
  const whole = make("button", "whole", "Whole answer");
  bar.append(whole);
  const pick = (row, wanted) => (row === null ? ask(wanted) : choose(row));
  const ask = (wanted) => {
    hint.textContent = "Computing this row.";
    setTriggerValue("asked", wanted);
  };
  const sentenceButtons = data.sentences.map((row, index) => {
    const button = make("button", "sentence" + (row === null ? " unasked" : ""), "Sentence " + (index + 1));
    button.onclick = () => pick(row, { sentence: index });
    bar.append(button);
    return button;
  });
  const legend = make("span", "note");
  const scale = make("span", "scale");
  const low = make("span");
  const high = make("span");
  legend.append(low, scale, high);
  const hint = make("span", "note", data.hint);
  bar.append(legend, hint);
  whole.onclick = () => choose(0);
  let chosen = 0;
  let ranked = false;
  const toggle = (text, flip) => {
    const button = make("button", "sorting", text);
    button.setAttribute("aria-pressed", "false");
    button.onclick = () => {
      button.setAttribute("aria-pressed", String(flip()));
      choose(chosen);
    };
    bar.append(button);
  };
  toggle("Largest first", () => (ranked = !ranked));
  if (data.sizes) {
    toggle("Show signs", () => (signs = !signs));
    if (data.rows.length > 1) toggle("Rescale to this row", () => (own = !own));
  }

  const answer = make("div", "answer");
  const tokens = data.answer.map((token) => {
    if (token.row === null && !token.asks) return make("span", "marker", token.text);
    // No <button>: as a box of its own it would indent a line by its leading space, and break words between tokens.
    const piece = make("span", "tok" + (token.differs ? " differs" : ""), token.text);
    piece.setAttribute("role", "button");
    piece.tabIndex = 0;
    if (!token.text.trim()) piece.setAttribute("aria-label", "white space");
    if (token.differs) piece.title = "The model itself would have chosen another token here.";
    piece.onclick = () => pick(token.row, token.asks);
    piece.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(token.row, token.asks);
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
    const share = data.sizes ? percent(shares[chosen][p][i]) + " of |relevance|, " : "";
    span.title = share + signed(value) + " " + data.unit + (said ? ", " + said : "");
  };

  const choose = (row) => {
    const values = shown(row);
    const totals = values.map(total);
    const end = top(row);
    const widest = Math.max(0, ...totals.map(Math.abs));
    low.textContent = signs ? signed(-end) : "0%";
    high.textContent = signs ? `${signed(end)} ${data.unit}` : `${percent(end)} or more of |relevance|, a word`;
    if (signs && data.sizes) high.textContent += " or more, a word";
    scale.style.background = `linear-gradient(to right, ${signs ? colour(-1) + ", " : ""}transparent, ${colour(1)})`;
    const order = totals.map((_, p) => p).sort((a, b) => totals[b] - totals[a]);
    values.forEach((passage, p) => {
      passage.forEach((value, i) => {
        const share = end ? value / end : 0;
        const plain = Math.abs(share) < 0.02 || under(value, row).startsWith("under");
        cells[p][i].style.background = plain ? "" : colour(share);
      });
      const said = passage.length === 1 ? under(totals[p], row) : "";
      const { sum, fill, card } = sums[p];
      const size = signs ? (passage.length === 1 ? "" : "sum ") + signed(totals[p]) : percent(totals[p]) + " of |relevance|";
      sum.textContent = size + (said ? " ·" : "");
      sum.title = said;
      card.classList.toggle("faint", said !== "");
      const share = widest ? totals[p] / widest : 0;
      const half = signs ? 50 : 100; // signed bars start in the middle, shares at the left
      fill.style.left = (signs ? Math.min(50, 50 + 50 * share) : 0) + "%";
      fill.style.width = half * Math.abs(share) + "%";
      fill.style.background = signs ? (share >= 0 ? positive : negative) : sequential;
      fill.parentElement.classList.toggle("from-left", !signs);
      card.style.order = ranked ? order.indexOf(p) : p;
    });
    chosen = row;
    whole.setAttribute("aria-pressed", String(row === 0));
    sentenceButtons.forEach((button, index) => button.setAttribute("aria-pressed", String(row === data.sentences[index])));
    data.answer.forEach((token, index) => {
      const clickable = token.row !== null || Boolean(token.asks);
      const inSentence = token.sentence !== null && row > 0 && data.sentences[token.sentence] === row;
      tokens[index].classList.toggle("chosen", clickable && (token.row === row || inSentence));
    });
    root.dataset.row = row;
  };

  root.append(bar, answer, grid);
  choose(data.chosen || 0);
  return () => root.replaceChildren();
}
