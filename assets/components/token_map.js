// Passages as token heatmaps; a click in the answer recolours them here, without asking Python.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const signed = (value) => (value >= 0 ? "+" : "−") + Math.abs(value).toPrecision(3);

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
  bar.append(legend, make("span", "note", "Click a word of the answer to explain that token."));
  whole.onclick = () => choose(0);

  const answer = make("div", "answer");
  const tokens = data.answer.map((token) => {
    if (token.row === null) return make("span", "marker", token.text);
    const button = make("button", "tok" + (token.differs ? " differs" : ""), token.text);
    if (!token.text.trim()) button.setAttribute("aria-label", "white space");
    if (token.differs) button.title = "The model itself would have chosen another token here.";
    button.onclick = () => choose(token.row);
    return button;
  });
  answer.append(...tokens);

  const grid = make("div", "grid");
  const cells = [];
  const sums = [];
  for (const passage of data.passages) {
    const card = make("section", "card");
    const head = make("div", "head");
    const sum = make("span", "sum");
    head.append(make("b", "", passage.number), make("span", "title", passage.title), sum);
    const text = make("div", "text");
    const spans = passage.tokens.map((piece) => make("span", "", piece));
    text.append(...spans);
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", "Passage " + passage.number);
    card.append(head, text);
    grid.append(card);
    cells.push(spans);
    sums.push(sum);
  }

  const choose = (row) => {
    const values = data.rows[row];
    let top = 0;
    for (const passage of values) for (const value of passage) top = Math.max(top, Math.abs(value));
    low.textContent = signed(-top);
    high.textContent = signed(top) + " " + data.unit;
    values.forEach((passage, p) => {
      let total = 0;
      passage.forEach((value, i) => {
        total += value;
        const span = cells[p][i];
        const share = top ? value / top : 0;
        span.style.background = Math.abs(share) < 0.02 ? "" : colour(share);
        span.title = signed(value);
      });
      sums[p].textContent = "sum " + signed(total);
    });
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
