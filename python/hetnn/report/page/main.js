// What the page does when it opens: it reads its data, shows its sections, and ties search, graph and details together.

const MOST_FOUND = 60, MOST_AT_FIRST = 16;

const model = readModel(JSON.parse(byId("data").textContent));
const drawing = new Drawing(model, byId("drawing"), showDetails);

function chooseNode(name) {
  const index = model.producer.get(name);
  if (index === undefined) return;
  drawing.reveal(model.nodes[index]);
  byId("graph").scrollIntoView({ block: "nearest" });
}

function showDetails(item) {
  const panel = byId("details"), list = tag("dl");
  const say = (key, value) => { if (value !== undefined && value !== null && value !== "" && value.length !== 0) list.append(tag("dt", {}, key), tag("dd", {}, value)); };
  if (item.children) {
    say("nodes", whole(item.sum.nodes));
    say("time", micros(item.sum.us));
    say("MACs", whole(item.sum.macs));
    for (const [device, [nodes, us]] of Object.entries(item.sum.on)) if (nodes) say(`on ${device}`, `${count(nodes, "node")}, ${micros(us)}`);
    if (Number.isFinite(item.sum.noise)) say("over noise", `${item.sum.noise.toFixed(1)} dB at least`);
    const opened = drawing.open.has(item.id);
    panel.replaceChildren(tag("h3", {}, item.label), list, tag("p", {}, tag("button", { onclick: () => drawing.toggle(item) }, opened ? "close" : "open")));
    return;
  }
  const { row } = item;
  for (const [key, value] of [["operator", row.op], ["device", row.device], ["subgraph", String(row.subgraph)], ["type", row.dtype],
    ["computes in", row.computes_in], ["shape", (row.shape ?? []).join(" × ")], ["module", row.module], ["at", row.loc],
    ["MACs", row.macs && whole(row.macs)], ["bytes", row.bytes && whole(row.bytes)], ["predicted", row.predicted_us !== undefined && micros(row.predicted_us)],
    ["measured", row.measured_us !== undefined ? micros(row.measured_us) : null], ["kernel", row.kernel], ["tile", row.tile && JSON.stringify(row.tile)],
    ["cycles", row.cycles && whole(row.cycles)], ["stalled", row.stall_cycles && `${whole(row.stall_cycles)} cycles`], ["computed by", row.into],
    ["over noise", row.noise_db !== undefined ? `${row.noise_db.toFixed(1)} dB` : null], ["made from", (row.made_from ?? []).join(", ")]]) {
    say(key, value || null);
  }
  say("reads", links(row.inputs.filter((name) => model.producer.has(name)), chooseNode));
  const readers = model.rows.filter((other) => other.inputs.includes(row.node)).map((other) => other.node);
  if (readers.length) say("read by", links(readers, chooseNode));
  const why = model.report.not_on_preferred.find((other) => other.node === row.node);
  for (const reason of why?.reasons ?? []) say(`not on ${reason.device}`, `${reason.text} (${reason.label})`);
  panel.replaceChildren(tag("h3", {}, row.node), list);
}

function setUpSearch() {
  const input = byId("search"), list = byId("found");
  const texts = model.rows.map((row) => `${row.node} ${row.op} ${row.module ?? ""} ${row.loc ?? ""}`.toLowerCase());
  let chosen = 0;
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); };
  const mark = () => {
    [...list.children].forEach((item, k) => item.setAttribute("aria-selected", k === chosen));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[chosen]?.id ?? "");
  };
  const go = (name) => { close(); chooseNode(name); };
  const find = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? model.rows.filter((_, k) => words.every((word) => texts[k].includes(word))) : [];
    hits.sort((a, b) => (b.node.toLowerCase() === words[0]) - (a.node.toLowerCase() === words[0]));
    list.replaceChildren(...hits.slice(0, MOST_FOUND).map((row, k) => tag("li", { role: "option", id: `found${k}`, "data-node": row.node,
      onmousedown: (event) => { event.preventDefault(); go(row.node); } }, row.node, " ", tag("small", {}, `${row.op} on ${row.device} ${row.module ?? ""}`))));
    if (words.length && !hits.length) list.append(tag("li", { "aria-disabled": "true" }, "nothing is called that"));
    if (hits.length > MOST_FOUND) list.append(tag("li", { "aria-disabled": "true" }, `${whole(hits.length - MOST_FOUND)} more`));
    list.hidden = !words.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    chosen = 0;
    mark();
  };
  input.addEventListener("input", find);
  input.addEventListener("focus", find);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const most = list.querySelectorAll("[data-node]").length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = Math.min(Math.max(0, most - 1), Math.max(0, chosen + (event.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (event.key === "Enter" && list.children[chosen]?.dataset.node) go(list.children[chosen].dataset.node);
    else if (event.key === "Escape") { close(); input.blur(); }
  });
}

/** Opens modules, the largest first, while what is drawn can still be taken in at one look. */
function openLargest() {
  let boxes = model.root.children.length;
  const closed = model.root.children.filter((item) => item.children);
  while (closed.length) {
    const group = closed.sort((a, b) => a.sum.nodes - b.sum.nodes).pop();
    if (boxes + group.children.length > MOST_AT_FIRST) return;
    drawing.open.add(group.id);
    boxes += group.children.length - 1;
    closed.push(...group.children.filter((item) => item.children));
  }
}

function setUpGraph() {
  const modes = ["device", "time", ...(Number.isFinite(model.root.sum.noise) ? ["noise"] : [])];
  const legend = () => {
    const swatch = (fill, text) => [tag("i", { class: "swatch", style: `background:${fill}` }), text];
    const said = { device: model.devices.flatMap((name, k) => swatch(`var(--d${k % 5})`, `${name}: ${whole(model.report.nodes_on[name])}`)),
      time: [...swatch("var(--back)", "none"), ...swatch("var(--hot)", "most")], noise: [...swatch("var(--hot)", `${NOISY_DB} dB`), ...swatch("var(--good)", `${QUIET_DB} dB over its noise`)] };
    byId("legend").replaceChildren(...said[drawing.mode]);
  };
  byId("colour").append(...modes.map((mode) => tag("option", { value: mode }, mode)));
  byId("colour").addEventListener("change", (event) => { drawing.mode = event.target.value; drawing.paint(); legend(); });
  byId("collapse").addEventListener("click", () => { drawing.open.clear(); drawing.draw(); });
  byId("in").addEventListener("click", () => drawing.setZoom(drawing.zoom * 1.25));
  byId("out").addEventListener("click", () => drawing.setZoom(drawing.zoom / 1.25));
  byId("fit").addEventListener("click", () => drawing.fit());
  addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
    else if (event.key === "+" || event.key === "-") drawing.setZoom(drawing.zoom * (event.key === "+" ? 1.25 : 0.8));
    else if (event.key === "0") drawing.fit();
  });
  openLargest();
  drawing.draw();
  legend();
  const [first] = [...model.root.children].sort((a, b) => b.sum.us - a.sum.us);
  if (first) { drawing.chosen = first; drawing.mark(first); showDetails(first); }
}

const facts = model.report;
byId("facts").textContent = `${facts.target}, ${count(facts.graph.length, "node")} in ${count(facts.subgraphs.length, "subgraph")}, ` +
  `predicted ${micros(facts.predicted_us)}, ${whole(facts.crossing_bytes)} bytes cross`;
showTime(model, byId("time"), chooseNode);
showReasons(model, byId("reasons"), chooseNode);
setUpGraph();
setUpSearch();
showMore(model, byId("more"), chooseNode);
document.documentElement.dataset.ready = "yes";
