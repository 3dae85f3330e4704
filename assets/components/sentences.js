// The answer with its sentences in the tint of their verdicts, and beside it a card per sentence with its evidence.
// A click or arrow key chooses a sentence on both sides. Text is only ever textContent.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const factBlock = (fact, several) => {
  const box = make("div");
  if (several) {
    const line = make("p", "fact", fact.text + " ");
    line.append(make("span", "word", "(" + fact.word + ")"));
    box.append(line);
  }
  if (fact.lead) box.append(make("p", "note", fact.lead));
  if (fact.quote) {
    const quote = make("blockquote");
    quote.append(make("span", "around", fact.quote.before), make("mark", "", fact.quote.words), make("span", "around", fact.quote.after));
    box.append(quote, make("p", "source", fact.quote.source));
  }
  for (const line of fact.notes) box.append(make("p", "note", line));
  return box;
};

const card = (sentence) => {
  const box = make("section", "card " + sentence.kind);
  const head = make("div", "head");
  head.append(make("span", "number", "Sentence " + sentence.number), make("span", "word", sentence.word), make("span", "by", sentence.by));
  box.append(head);
  for (const fact of sentence.facts) box.append(factBlock(fact, sentence.facts.length > 1));
  return box;
};

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".gw");
  root.replaceChildren();
  const left = make("div", "left");
  const right = make("div");
  const answer = make("div", "answer");
  const cards = make("div", "cards");
  cards.tabIndex = 0;
  cards.setAttribute("role", "group");
  cards.setAttribute("aria-label", "Evidence by sentence");
  const spans = [];
  const boxes = [];

  const choose = (place, focus, tell) => {
    spans.forEach((span, i) => {
      if (span.tabIndex >= 0) span.setAttribute("aria-current", String(i === place));
      if (boxes[i]) boxes[i].setAttribute("aria-current", String(i === place));
    });
    if (boxes[place]) cards.scrollTo({ top: boxes[place].offsetTop - cards.offsetTop - 4, behavior: "smooth" });
    if (focus) spans[place].focus();
    if (tell) setStateValue("sentence", place + 1);
  };

  data.sentences.forEach((sentence, place) => {
    if (sentence.gap) answer.append(document.createTextNode(sentence.gap));
    const span = make("span", "s " + sentence.kind);
    for (const piece of sentence.pieces) {
      if (piece.number === undefined) span.append(document.createTextNode(piece.text));
      else {
        const cite = make("span", "cite" + (piece.valid ? "" : " invalid"), piece.number);
        cite.title = piece.title;
        span.append(cite);
      }
    }
    spans.push(span);
    answer.append(span);
    if (!sentence.claim) { boxes.push(null); return; }
    span.tabIndex = 0;
    span.setAttribute("role", "button");
    span.title = sentence.word;
    span.onclick = () => choose(place, false, true);
    span.onkeydown = (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(place, false, true); return; }
      const step = { ArrowDown: 1, ArrowRight: 1, j: 1, ArrowUp: -1, ArrowLeft: -1, k: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      for (let next = place + step; next >= 0 && next < spans.length; next += step)
        if (boxes[next]) { choose(next, true, true); return; }
    };
    const box = card(sentence);
    box.onclick = () => choose(place, false, true);
    boxes.push(box);
    cards.append(box);
  });
  if (data.tail) answer.append(document.createTextNode(data.tail));
  left.append(make("h3", "", "Answer"), answer, make("p", "hint", "Click a sentence, or use the arrow keys, to see its evidence."));
  right.append(make("h3", "", "Evidence by sentence"), cards);
  root.append(left, right);
  if (data.chosen) choose(data.chosen - 1, false, false);
  return () => root.replaceChildren();
}
