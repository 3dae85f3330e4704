// The answer at the left, its sources at the right as heatmaps of words, sentences or whole. A click on a sentence (or, on
// request, a word) recolours the sources here; only a row that has not been computed is asked of Python.
const percent = (share) => (share >= 0.0995 ? Math.round(100 * share) : (100 * share).toFixed(share >= 0.00995 ? 1 : 2)) + "%";
const ROBUST = 0.99; // the scale ends here: one extreme word would drain the others of colour
const robust = (values) => {
  const sizes = values.filter((value) => value > 0).sort((a, b) => a - b);
  return sizes.length ? sizes[Math.floor(ROBUST * (sizes.length - 1))] : 0;
};
const figure = (size) => (size < 100 ? size.toPrecision(3) : Math.round(size).toLocaleString("en-US"));
const signed = (value) => (value >= 0 ? "+" : "-") + figure(Math.abs(value));
// What a value in nats per token does to the probability: e^1.2 is 3.3 times.
const times = (value) => {
  const factor = Math.exp(Math.abs(value));
  if (factor < 1.05) return "as likely without it";
  const said = factor >= 1000 ? "over 1,000" : factor >= 10 ? Math.round(factor) : factor.toFixed(1);
  return `${said}x ${value > 0 ? "less" : "more"} likely without it`;
};
const SELECTED = "groundwork-selected"; // told to the other maps of the page

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".gw");
  root.tell = setTriggerValue;
  const same = JSON.stringify({ ...data, chosen: null, passage: null, check: null });
  if (root.drawn === same) { root.judge(data.check); return; } // only the choice came back, or the map's check
  root.drawn = same;
  root.replaceChildren();
  const [negative, positive, sequential] = data.colours;
  const tint = (hue, share) => `color-mix(in srgb, ${hue} ${(Math.min(1, share) * data.strength).toFixed(1)}%, transparent)`;
  // `sizes` are sums of |relevance|: drawn as shares of the row's total unless the sign is asked for.
  let signs = !data.sizes;
  let own = false;
  let words = false; // what a click in the answer explains: its word, or its sentence
  // Colour grows with the root of a word's share: most of the relevance lies in many small shares.
  const depth = (share) => (data.sizes ? Math.sqrt(Math.min(1, Math.abs(share))) : Math.abs(share));
  const colour = (share) => (signs ? tint(share >= 0 ? positive : negative, depth(share)) : tint(sequential, depth(share)));
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

  const left = make("div", "left");
  const right = make("div", "right");
  const units = make("div", "bar");
  const views = make("div", "bar");
  const whole = make("button", "whole", "Whole answer");
  units.append(whole);
  const toggle = (bar, text, pressed, flip) => {
    const button = make("button", "sorting", text);
    button.setAttribute("aria-pressed", String(pressed));
    button.onclick = () => button.setAttribute("aria-pressed", String(flip()));
    bar.append(button);
  };
  const hint = make("p", "hint", data.hint);
  const ask = (wanted) => {
    hint.textContent = "Computing this row.";
    root.tell("asked", wanted);
  };
  // A sentence is selected on every page of the case; a word only here.
  const select = (selected) => {
    root.tell("selected", selected);
    window.dispatchEvent(new CustomEvent(SELECTED, { detail: { ...selected, from: root } }));
  };
  const pick = (row, wanted) => (row === null ? ask(wanted) : choose(row));
  const pickSentence = (index) => {
    select({ sentence: index + 1 });
    pick(data.sentences[index], { sentence: index });
  };
  whole.onclick = () => { select({ sentence: 0 }); choose(0); };
  let chosen = 0;
  let ranked = true;

  const answer = make("div", "answer");
  const sentences = data.sentences.map((row, index) => {
    const span = make("span", "sent" + (row === null ? " unasked" : ""));
    span.setAttribute("role", "button");
    span.tabIndex = 0;
    span.onclick = () => words || pickSentence(index);
    span.onkeydown = (event) => {
      if (words) return;
      const step = { ArrowDown: 1, ArrowRight: 1, j: 1, ArrowUp: -1, ArrowLeft: -1, k: -1 }[event.key];
      if (step === undefined && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      if (step === undefined) { pickSentence(index); return; }
      const next = index + step;
      if (next < 0 || next >= sentences.length) return;
      sentences[next].focus();
      if (data.sentences[next] !== null) pickSentence(next);
    };
    return span;
  });
  const tokens = data.answer.map((token) => {
    if (token.number !== undefined) {
      const pill = make("span", "cite", token.number);
      pill.dataset.passages = token.number;
      pill.onclick = (event) => { event.stopPropagation(); pickPassage(parseInt(token.number)); };
      return pill;
    }
    if (token.row === null && !token.asks) return make("span", "marker", token.text);
    // No <button>: as a box of its own it would indent a line by its leading space, and break words between tokens.
    const piece = make("span", "tok" + (token.differs ? " differs" : ""), token.text);
    if (token.differs) piece.title = "The model would have chosen another token here.";
    piece.onclick = () => words && pick(token.row, token.asks);
    piece.onkeydown = (event) => {
      if (!words || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      pick(token.row, token.asks);
    };
    return piece;
  });
  const placed = new Set();
  data.answer.forEach((token, index) => {
    const home = token.sentence === null ? answer : sentences[token.sentence];
    if (home !== answer && !placed.has(home)) { answer.append(home); placed.add(home); }
    home.append(tokens[index]);
  });
  const mark = (piece, current) => {
    piece.classList.toggle("chosen", current);
    piece.setAttribute("aria-current", String(current));
  };
  const byWord = () => {
    answer.classList.toggle("words", words);
    for (const span of sentences) {
      if (words) { span.removeAttribute("role"); span.removeAttribute("tabindex"); }
      else { span.setAttribute("role", "button"); span.tabIndex = 0; }
    }
    for (const piece of answer.querySelectorAll(".tok")) {
      if (!words) { piece.removeAttribute("role"); piece.removeAttribute("tabindex"); piece.removeAttribute("aria-label"); continue; }
      piece.setAttribute("role", "button");
      piece.tabIndex = 0;
      if (!piece.textContent.trim()) piece.setAttribute("aria-label", "white space");
    }
  };
  if (data.words) toggle(units, "Pick single words", false, () => { words = !words; byWord(); return words; });

  const legend = make("span", "note");
  const scale = make("span", "scale");
  const low = make("span");
  const high = make("span");
  legend.append(low, scale, high);
  const badge = make("span");
  root.judge = (check) => {
    badge.className = "badge " + (check ? check.stand : "");
    badge.textContent = check ? check.text : "";
    badge.hidden = !check;
  };
  views.append(legend, badge);
  toggle(views, "Largest first", ranked, () => { ranked = !ranked; choose(chosen); return ranked; });
  if (data.sizes) {
    if (data.rows.flat(2).some((value) => value < 0)) // a norm has no sign
      toggle(views, "Show signs", signs, () => { signs = !signs; choose(chosen); return signs; });
    if (data.rows.length > 1) toggle(views, "Rescale to this row", own, () => { own = !own; choose(chosen); return own; });
  }

  const grid = make("div", "grid");
  const cells = [];
  const sums = [];
  for (const [place, passage] of data.passages.entries()) {
    const card = make("section", "card");
    const head = make("button", "head");
    head.title = "Select this passage on every page of the case";
    head.onclick = () => pickPassage(card.getAttribute("aria-current") === "true" ? 0 : passage.numbers[0]);
    head.onkeydown = (event) => step(event, card);
    const sum = make("span", "sum");
    const track = make("div", "track");
    const band = make("span", "band");
    const fill = make("span", "fill");
    track.append(band, fill);
    const said = make("p", "said");
    head.append(make("b", "", passage.number), make("span", "title", passage.title), sum);
    const text = make("div", "text");
    const spans = passage.tokens.map((piece) => make("span", "", piece));
    text.append(...spans);
    text.classList.toggle("one", spans.length === 1);
    text.onpointerover = (event) => name(event.target, spans.indexOf(event.target), place);
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", "Passage " + passage.number);
    card.append(head, track, said, text);
    grid.append(card);
    cells.push(spans);
    sums.push({ sum, fill, band, said, card, head });
  }
  const showPassage = (number) => {
    sums.forEach(({ card }, p) => card.setAttribute("aria-current", String(data.passages[p].numbers.includes(number))));
    for (const pill of answer.querySelectorAll(".cite"))
      pill.classList.toggle("selected", pill.dataset.passages.split(", ").includes(String(number)));
  };
  const pickPassage = (number) => {
    showPassage(number);
    select({ passage: number });
  };
  // The arrow keys go through the passages in the order in which they are drawn.
  const step = (event, card) => {
    const by = { ArrowDown: 1, ArrowRight: 1, j: 1, ArrowUp: -1, ArrowLeft: -1, k: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const order = sums.map((_, p) => p).sort((a, b) => sums[a].card.style.order - sums[b].card.style.order);
    const next = order[order.findIndex((p) => sums[p].card === card) + by];
    if (next === undefined) return;
    sums[next].head.focus();
    pickPassage(data.passages[next].numbers[0]);
  };

  // What a value says beside its size: nothing told apart from rounding, or no more than an unrelated passage does.
  const floors = (row) => (data.floors ? data.floors[row] : [null, null]);
  const under = (value, row) => {
    const [numerical, placebo] = floors(row);
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
    const [, placebo] = floors(row);
    const alone = values.every((passage) => passage.length === 1);
    const widest = Math.max(0, ...totals.map(Math.abs), alone && placebo ? placebo : 0);
    low.textContent = signs ? signed(-end) : "0%";
    high.textContent = signs ? `${signed(end)} ${data.unit}` : `${percent(end)} or more of |relevance| per word`;
    if (signs && data.sizes) high.textContent += " or more per word";
    if (data.sizes) high.textContent += `; half the colour at ${signs ? signed(end / 4) : percent(end / 4)}`;
    scale.style.background = `linear-gradient(to right, ${signs ? colour(-1) + ", " : ""}transparent, ${colour(1)})`;
    const order = totals.map((_, p) => p).sort((a, b) => Math.abs(totals[b]) - Math.abs(totals[a]));
    values.forEach((passage, p) => {
      passage.forEach((value, i) => {
        const share = end ? value / end : 0;
        const plain = Math.abs(share) < (data.sizes ? 0.005 : 0.02) || under(value, row).startsWith("under");
        // One value for a whole text colours its edge: as a ground it would look like one for each word.
        if (passage.length === 1) cells[p][i].parentElement.style.borderColor = plain ? "" : colour(share);
        else cells[p][i].style.background = plain ? "" : colour(share);
      });
      const weak = passage.length === 1 ? under(totals[p], row) : "";
      const { sum, fill, band, said, card } = sums[p];
      const unit = data.sizes ? "" : " " + data.unit;
      sum.textContent = signs ? (passage.length === 1 ? "" : "sum ") + signed(totals[p]) + unit : percent(totals[p]) + " of |relevance|";
      const parts = [];
      if (data.counts && data.counts[row] > 1) parts.push(`${signed(totals[p] / data.counts[row])} per token`);
      if (data.counts && !weak) parts.push(times(totals[p] / data.counts[row]) + (data.counts[row] > 1 ? ", on average" : ""));
      if (weak) parts.push(weak);
      if (data.beside && data.beside[row]) parts.push(data.beside[row][p]);
      said.textContent = parts.join(" · ");
      said.hidden = !parts.length;
      card.classList.toggle("faint", weak !== "");
      const share = widest ? totals[p] / widest : 0;
      const half = signs ? 50 : 100; // signed bars start in the middle, shares at the left
      fill.style.left = (signs ? Math.min(50, 50 + 50 * share) : 0) + "%";
      fill.style.width = half * Math.abs(share) + "%";
      fill.style.background = signs ? (share >= 0 ? positive : negative) : sequential;
      const floor = alone && placebo && widest ? Math.min(1, placebo / widest) : 0;
      band.style.left = 50 - 50 * floor + "%";
      band.style.width = 100 * floor + "%";
      band.title = floor ? `An unrelated passage reaches ${figure(placebo)} ${data.unit}` : "";
      fill.parentElement.classList.toggle("from-left", !signs);
      card.style.order = ranked ? order.indexOf(p) : p;
    });
    chosen = row;
    whole.setAttribute("aria-pressed", String(row === 0));
    sentences.forEach((span, index) => mark(span, row > 0 && data.sentences[index] === row));
    data.answer.forEach((token, index) => {
      const clickable = token.row !== null || Boolean(token.asks);
      mark(tokens[index], clickable && token.row === row && row > 0 && !data.sentences.includes(row));
    });
    root.dataset.row = row;
  };

  // Another map of the page chose a sentence or passage: follow it where it is here.
  if (root.follow) window.removeEventListener(SELECTED, root.follow);
  root.follow = (event) => {
    const { sentence, passage, from } = event.detail;
    if (from === root) return;
    if (passage !== undefined) { showPassage(passage); return; }
    const row = sentence ? data.sentences[sentence - 1] : 0;
    if (row !== null && row !== undefined) choose(row);
  };
  window.addEventListener(SELECTED, root.follow);

  left.append(units, answer, hint);
  right.append(views, grid);
  root.append(left, right);
  byWord();
  root.judge(data.check);
  choose(data.chosen || 0);
  showPassage(data.passage);
  return () => window.removeEventListener(SELECTED, root.follow);
}
