// Elements, figures and tables: texts go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function put(parent, element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  parent?.append(element);
  return element;
}
const tag = (name, attributes = {}, ...children) => put(null, document.createElement(name), attributes, children);
const shape = (parent, name, attributes = {}, ...children) => put(parent, document.createElementNS(SVG, name), attributes, children);
const byId = (id) => document.getElementById(id);

const whole = (number) => Math.round(number).toLocaleString("en");
const micros = (us) => us >= 1e4 ? `${(us / 1e3).toLocaleString("en", { maximumFractionDigits: 1 })} ms`
  : `${us.toLocaleString("en", { maximumFractionDigits: us < 10 ? 2 : 1 })} µs`;
const count = (number, what) => `${whole(number)} ${what}${number === 1 ? "" : "s"}`;
const clip = (text, most) => text.length <= most ? text : `${text.slice(0, most - 1)}…`;

/** A table; a number is set to the right, and an array of [text, number] keeps the text. */
function tableOf(head, rows, nothing) {
  if (!rows.length) return tag("p", { class: "none" }, nothing);
  const numeric = head.map((_, k) => rows.every((row) => typeof row[k] === "number"));
  const show = (cell) => typeof cell === "number" ? (Number.isInteger(cell) ? whole(cell) : cell.toLocaleString("en", { maximumFractionDigits: 1 })) : cell;
  const line = (cells, name) => tag("tr", {}, ...cells.map((cell, k) => tag(name, numeric[k] ? { class: "n" } : {}, show(cell ?? ""))));
  return tag("div", { class: "scroll" }, tag("table", {}, tag("thead", {}, line(head, "th")), tag("tbody", {}, ...rows.map((row) => line(row, "td")))));
}

/** Details that are filled when they are opened. */
function folded(title, fill) {
  const out = tag("details", {}, tag("summary", {}, title));
  out.addEventListener("toggle", () => { if (out.open && out.children.length === 1) out.append(fill()); });
  return out;
}
