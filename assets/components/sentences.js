// The answer with its sentences in the tint of their verdicts, and beside it a card per sentence with its evidence.
// A click or arrow key chooses a sentence on both sides; a button accepts an edit. Text is only ever textContent.
const HINT = "Click a sentence, or use the arrow keys, to see its evidence. A number opens its source. " +
  "The verdicts are a model's. It misses small errors where the answer uses other words than the source, so read the evidence.";

// A double click is one decision; the dialog that asks who decides may be closed, so the buttons come back.
const rest = (...buttons) => {
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, 1500);
};

const factBlock = (fact, several, decide, pick) => {
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
    const source = make("p", "source");
    const number = fact.quote.number;
    const name = make(number ? "button" : "span", "", fact.quote.source);
    if (number) {
      name.dataset.passage = number;
      name.title = "Open the sentence in its source";
      name.onclick = (event) => { event.stopPropagation(); pick(number); };
    }
    source.append(name);
    box.append(quote, source);
  }
  for (const line of fact.notes) box.append(make("p", "note", line));
  for (const edit of fact.edits) {
    const row = make("div", "fix");
    const keep = ["rejected", "keep", "Keep the words"];
    const take = ["accepted", edit.fix ? "accept" : "keep", edit.say];
    for (const [value, className, label] of edit.fix ? [take, keep] : [keep, take]) {
      const button = make("button", className, label);
      button.onclick = (event) => {
        event.stopPropagation();
        rest(...row.children);
        decide({ edit: edit.id, value });
      };
      row.append(button);
    }
    box.append(row);
  }
  return box;
};

// A reviewer's own verdict on a fact and own words for the sentence, with a reason.
const ownForm = (sentence, verdicts, decide) => {
  const box = make("details", "own");
  box.append(make("summary", "", "Your verdict"));
  const form = make("form");
  form.onclick = (event) => event.stopPropagation();
  const labelled = (text, field) => {
    const label = make("label", "", text);
    label.append(field);
    form.append(label);
    return field;
  };
  const fact = make("select");
  for (const one of sentence.facts) fact.append(new Option(one.text, one.name));
  if (sentence.facts.length > 1) labelled("Fact", fact);
  const group = make("fieldset");
  group.append(make("legend", "", "Verdict on the fact"));
  for (const word of verdicts) {
    const label = make("label", "choice");
    const radio = make("input");
    Object.assign(radio, { type: "radio", name: "verdict" + sentence.number, value: word });
    label.append(radio, make("span", "", word));
    group.append(label);
  }
  form.append(group);
  const text = labelled("Rewrite the sentence (empty: delete it)", make("textarea"));
  text.value = sentence.text;
  text.rows = 3;
  const reason = labelled("Reason", make("input"));
  reason.placeholder = "what the source says";
  const said = make("p", "note");
  said.setAttribute("role", "status");
  const save = make("button", "accept", "Save");
  const row = make("div", "fix");
  row.append(save);
  form.append(row, said);
  form.onsubmit = (event) => {
    event.preventDefault();
    const verdict = group.querySelector("input:checked")?.value || "";
    const changed = text.value.trim() !== sentence.text.trim();
    if (!verdict && !changed) { said.textContent = "Choose a verdict, or change the sentence."; return; }
    if (!reason.value.trim()) { said.textContent = "Give a reason."; return; }
    rest(save);
    decide({ sentence: sentence.number, fact: fact.value, verdict, reason: reason.value, text: changed ? text.value : null });
  };
  form.onkeydown = (event) => event.stopPropagation();
  box.onclick = (event) => event.stopPropagation();
  box.append(form);
  return box;
};

const card = (sentence, data, decide, pick) => {
  const box = make("section", "card " + sentence.kind);
  const head = make("div", "head");
  const by = make("span", "by", sentence.by);
  if (sentence.by.startsWith("probability")) by.title = "The verifier's probability for its verdict on the worst fact. Borne out and contradicted are unsure below 0.6, or where a rule doubts them.";
  head.append(make("span", "number", "Sentence " + sentence.number), make("span", "word", sentence.word), by);
  box.append(head);
  for (const fact of sentence.facts) box.append(factBlock(fact, sentence.facts.length > 1, decide, pick));
  if (sentence.used) box.append(make("p", "source used", sentence.used));
  if (sentence.rewritten) {
    box.append(make("p", "note", sentence.rewritten));
    if (!data.frozen) {
      const row = make("div", "fix");
      const undo = make("button", "keep", "Undo");
      undo.onclick = (event) => { event.stopPropagation(); rest(undo); decide({ undo: sentence.number }); };
      row.append(undo);
      box.append(row);
    }
  }
  if (!data.frozen) box.append(ownForm(sentence, data.verdicts, decide));
  return box;
};

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".gw");
  root.tell = setTriggerValue;
  const held = root.contains(root.getRootNode().activeElement); // drawn anew, the focus stays in the answer
  const drawn = JSON.stringify({ ...data, chosen: null, passage: null });
  if (root.drawn === drawn) return; // only the choice came back
  root.drawn = drawn;
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

  const marked = (number) => {
    for (const part of root.querySelectorAll("[data-passage]"))
      part.classList.toggle("selected", Number(part.dataset.passage) === number);
  };
  const choose = (place, focus, tell, passage) => {
    spans.forEach((span, i) => {
      if (span.tabIndex >= 0) span.setAttribute("aria-current", String(i === place));
      if (boxes[i]) boxes[i].setAttribute("aria-current", String(i === place));
    });
    const below = left.offsetLeft === right.offsetLeft; // on a narrow page, which scrolls as a whole
    if (boxes[place] && below && tell) boxes[place].scrollIntoView({ behavior: glide() });
    else if (boxes[place]) cards.scrollTo({ top: boxes[place].offsetTop - cards.offsetTop - 4, behavior: glide() });
    if (focus) spans[place].focus();
    if (passage) marked(passage);
    if (tell) root.tell("selected", { sentence: place + 1, ...(passage && { passage }) });
  };

  data.sentences.forEach((sentence, place) => {
    answer.append(...sentence.gap.map((run) => make("span", run.style, run.text)));
    const span = make("span", `s ${sentence.kind} ${sentence.table}`.trim());
    const written = (piece) => {
      const cited = piece.number !== undefined;
      const drawn = cited ? make("span", "cite" + (piece.valid ? "" : " invalid"), piece.number) : make("span", piece.style, piece.text);
      if (cited) drawn.title = piece.title;
      if (cited && piece.valid) {
        drawn.dataset.passage = piece.number;
        if (sentence.claim) drawn.onclick = (event) => { event.stopPropagation(); choose(place, false, true, piece.number); };
      }
      if (!piece.change) return drawn;
      const changed = make(piece.change);
      changed.append(drawn);
      return changed;
    };
    if (sentence.table.startsWith("row")) drawRow(span, sentence.pieces, written);
    else span.append(...sentence.pieces.map(written));
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
    const box = card(sentence, data, (decision) => root.tell("decision", decision), (number) => choose(place, false, true, number));
    box.onclick = () => choose(place, false, true);
    boxes.push(box);
    cards.append(box);
  });
  answer.append(...data.tail.map((run) => make("span", run.style, run.text)));
  left.append(make("h3", "", data.title), answer, make("p", "hint", HINT));
  right.append(make("h3", "", "Evidence by sentence"), cards);
  root.append(left, right);
  if (data.chosen) choose(data.chosen - 1, held, false);
  marked(data.passage);
}
