// Lines over axes from 0 to 1, a figure per plot; hovering a point tells its values. Text is only ever textContent.
const WIDTH = 320, HEIGHT = 200, LEFT = 42, RIGHT = 10, TOP = 8, BOTTOM = 38;
const across = (x) => LEFT + x * (WIDTH - LEFT - RIGHT);
const up = (y) => HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM);

const draw = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

const axes = (plot) => {
  const parts = [];
  for (const at of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    parts.push(draw("line", { x1: across(0), x2: across(1), y1: up(at), y2: up(at), class: "grid" }));
    parts.push(draw("text", { x: LEFT - 6, y: up(at) + 4, "text-anchor": "end" }, String(at)));
    parts.push(draw("text", { x: across(at), y: up(0) + 15, "text-anchor": "middle" }, String(at)));
  }
  parts.push(draw("text", { x: across(0.5), y: HEIGHT - 4, "text-anchor": "middle" }, plot.x));
  parts.push(draw("text", { x: 10, y: up(0.5), "text-anchor": "middle", transform: `rotate(-90 10 ${up(0.5)})` }, plot.y));
  return parts;
};

const curve = (line) => {
  const group = draw("g", { class: "line" });
  const points = line.x.map((x, i) => `${across(x).toFixed(1)},${up(line.y[i]).toFixed(1)}`);
  group.append(draw("polyline", { points: points.join(" "), stroke: line.colour, ...(line.dashed ? { "stroke-dasharray": "6 4" } : {}) }));
  line.x.forEach((x, i) => {
    const point = draw("circle", { cx: across(x), cy: up(line.y[i]), r: 3.5, fill: line.colour });
    point.append(draw("title", {}, `${line.name}: ${line.y[i].toFixed(3)} at ${x.toFixed(2)}`));
    group.append(point);
  });
  return group;
};

const legend = (line) => {
  const item = document.createElement("span");
  const mark = document.createElement("i");
  mark.style.borderTop = `3px ${line.dashed ? "dashed" : "solid"} ${line.colour}`;
  item.append(mark, line.name);
  return item;
};

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".gw");
  const figures = data.plots.map((plot) => {
    const figure = document.createElement("figure");
    const title = document.createElement("figcaption");
    title.textContent = plot.title;
    const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${plot.title}. ${plot.y} against ${plot.x}` });
    picture.append(...axes(plot), ...plot.lines.map(curve));
    figure.append(title, picture);
    return figure;
  });
  const row = document.createElement("div");
  row.className = "row";
  row.append(...figures);
  const key = document.createElement("div");
  key.className = "legend";
  key.append(...(data.plots[0]?.lines ?? []).map(legend));
  root.replaceChildren(row, key);
}
