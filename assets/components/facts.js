// Clauses and facts as a tree; the chosen fact's evidence and rounds beside it. Up, down, j and k step through facts.
const passage = (seen, pick, open) => {
  const box = make("div", "passage" + (seen.decided ? " decided by-" + seen.decided : ""));
  if (seen.number) {
    const head = make("button", "note source", seen.head);
    head.dataset.number = seen.number;
    head.title = "Select this passage on every page of the case";
    head.onclick = () => pick(seen.number);
    box.append(head);
  } else box.append(make("div", "note", seen.head));
  const text = make("div", "text");
  for (const piece of seen.pieces) {
    const inner = make(piece.mark ? "mark" : "span", piece.window ? "window" : "", piece.text);
    text.append(inner);
  }
  box.append(text);
  if (seen.details) // the verdict, which opens on how sure it is
    box.append(fold(seen.notes.join(" "), (more) => more.append(...seen.details.map((line) => make("p", "note", line))), false));
  const more = make("button", "more", "Open in its document");
  more.onclick = () => open(seen.at);
  box.append(more);
  return box;
};

// A fold whose contents are made when it is opened first: most are never looked into.
const fold = (title, fill, open) => {
  const box = make("details");
  box.append(make("summary", "", title));
  if (open) fill(box);
  else box.addEventListener("toggle", () => fill(box), { once: true });
  box.open = open;
  return box;
};

const round = (done, pick, open, chosen) => fold(done.title, (box) => {
  for (const line of done.searched) box.append(make("p", "note", line));
  for (const seen of done.checked) box.append(passage(seen, pick, open));
  if (!done.checked.length) box.append(make("p", "note", "No passages were checked."));
  if (done.edit) box.append(make("p", "", done.edit));
  for (const rest of done.rest)
    if (rest.passages.length)
      box.append(fold(rest.title, (more) => more.append(...rest.passages.map((seen) => passage(seen, pick, open))),
        rest.passages.some((seen) => seen.number === chosen))); // a passage chosen elsewhere is not hidden here
  for (const said of done.said)
    box.append(fold(said.title, (raw) => raw.append(make("p", "note", said.text)), false));
}, done.last);

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".gw");
  root.tell = setTriggerValue;
  const drawn = JSON.stringify({ ...data, chosen: null, passage: null });
  if (root.drawn === drawn) return; // only the choice came back
  root.drawn = drawn;
  const kept = root.dataset.key === data.key ? root.state : undefined;
  root.dataset.key = data.key;
  const state = (root.state = kept || { passage: data.passage, attention: false, chosen: data.facts.find((fact) => fact.name === data.chosen)?.number ?? null });
  root.replaceChildren();

  const bar = make("div", "bar");
  const toggle = make("button", "toggle", data.attention_title);
  toggle.onclick = () => { state.attention = !state.attention; draw(); };
  bar.append(toggle, make("span", "hint", "Use the up and down arrow keys to move between facts."));
  const both = make("div", "both");
  const tree = make("div", "tree");
  const detail = make("div", "detail");
  detail.setAttribute("role", "region");
  detail.setAttribute("aria-label", "The chosen fact");
  detail.tabIndex = 0;
  detail.addEventListener("toggle", () => requestAnimationFrame(mark), true); // a fold was filled
  both.append(tree, detail);
  root.append(bar, both);

  const mark = () => {
    for (const head of detail.querySelectorAll("button.source")) {
      const selected = Number(head.dataset.number) === state.passage;
      head.setAttribute("aria-pressed", String(selected));
      head.parentElement.classList.toggle("selected", selected);
    }
  };
  const pick = (number) => {
    state.passage = state.passage === number ? null : number;
    mark();
    root.tell("passage", state.passage || 0);
  };
  const shown = () => data.facts.filter((fact) => !state.attention || fact.attention);
  const choose = (fact, focus, tell) => {
    state.chosen = fact ? fact.number : null;
    for (const button of tree.querySelectorAll("button.fact"))
      button.setAttribute("aria-current", String(Number(button.dataset.number) === state.chosen));
    if (focus) tree.querySelector(`button[data-number="${state.chosen}"]`)?.focus();
    if (tell && fact) root.tell("fact", fact.name);
    detail.replaceChildren();
    if (!fact) { detail.append(make("p", "note", "No facts need attention.")); return; }
    detail.append(make("h3", "", fact.text));
    for (const line of fact.lines) detail.append(make("p", "note", line));
    if (fact.details.length)
      detail.append(fold("Who decided, and how sure that is", (more) => more.append(...fact.details.map((line) => make("p", "note", line))), false));
    for (const done of fact.rounds) detail.append(round(done, pick, (at) => root.tell("source", at), state.passage));
    mark();
    const below = tree.offsetLeft === detail.offsetLeft; // on a narrow page, which scrolls as a whole
    if (below && tell && !focus) detail.scrollIntoView({ behavior: glide() });
  };
  const draw = () => {
    toggle.setAttribute("aria-pressed", String(state.attention));
    tree.replaceChildren();
    for (const clause of data.clauses) {
      const facts = shown().filter((fact) => fact.clause === clause.number);
      if (!facts.length) continue;
      const box = make("div", "clause");
      const said = make("p");
      for (const piece of clause.pieces)
        said.append(piece.number === undefined ? make("span", piece.style, piece.text) : make("span", "cite", piece.number));
      box.append(said);
      for (const fact of facts) {
        const button = make("button", "fact");
        button.dataset.number = fact.number;
        const chip = make("span", "chip " + fact.kind, fact.sure ? `${fact.word} · ${fact.sure}` : fact.word);
        if (fact.sure.startsWith("probability")) chip.title = "The verifier's probability for its verdict. Borne out and contradicted are unsure below 0.6, or where a rule doubts them.";
        button.append(make("span", "said", fact.text), chip);
        if (fact.own) button.append(make("span", "chip " + fact.own_kind, fact.own));
        button.onclick = () => choose(fact, false, true);
        box.append(button);
      }
      tree.append(box);
    }
    choose(shown().find((fact) => fact.number === state.chosen) || shown()[0], false);
  };
  tree.onkeydown = (event) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const facts = shown();
    const at = facts.findIndex((fact) => fact.number === state.chosen);
    choose(facts[Math.max(0, Math.min(facts.length - 1, at + step))], true, true);
  };
  draw();
}
