// What every component draws with. Text is only ever textContent.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches; // who asked for it sees nothing slide
const glide = () => (still() ? "instant" : "smooth");

// The pieces of a table's row as cells: it is cut at its bars, which are hidden and stay for whoever copies it.
const drawRow = (row, pieces, draw) => {
  let cell = row.appendChild(make("span", "cell"));
  for (const piece of pieces) {
    (piece.text ?? "").split("|").forEach((text, place) => {
      if (place) cell.append(make("span", "hidden", "|"));
      if (place && cell.textContent.trim() !== "|") cell = row.appendChild(make("span", "cell"));
      if (text || piece.text === undefined) cell.append(draw({ ...piece, ...(text && { text }) }));
    });
  }
  if (!cell.textContent.trim()) cell.remove();
};

