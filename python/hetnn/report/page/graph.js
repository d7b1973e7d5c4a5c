// The graph: boxes of modules that open and close, placed by dagre, coloured by device, time or noise.

const BOX_HEIGHT = 40, MANY = 1500, NOISY_DB = 10, QUIET_DB = 60;

class Drawing {
  constructor(model, place, tell) {
    Object.assign(this, { model, place, tell, open: new Set(), zoom: 1, mode: "device", chosen: null, groups: new Map() });
    this.order = Object.fromEntries(model.devices.map((name, k) => [name, k % 5]));
    place.addEventListener("keydown", (event) => this.onKey(event));
    place.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.setZoom(this.zoom * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
    }, { passive: false });
  }

  /** Places and draws what is open. */
  draw() {
    const { boxes, clusters, edges } = visible(this.model, this.open);
    const size = (box) => Math.min(260, Math.max(90, 20 + 6.6 * Math.max(this.title(box).length, this.under(box).length)));
    const parent = (item) => item.parent && item.parent.id !== "" ? item.parent.id : undefined;
    const nodes = [...clusters.map((group) => ({ v: group.id, width: 0, height: 0, parent: parent(group) })),
      ...boxes.map((box) => ({ v: box.id, width: size(box), height: BOX_HEIGHT, parent: parent(box) }))];
    const lines = edges.map((edge) => ({ v: edge.from, w: edge.to, edge }));
    const options = { nodesep: 16, ranksep: 22, edgesep: 10, ...(boxes.length > MANY ? { ranker: "longest-path" } : {}) };
    dagre.layout(nodes, lines, options, {});
    const at = new Map(nodes.map((node) => [node.v, node]));
    this.width = Math.max(60, ...nodes.map((node) => node.x + node.width / 2)) + 20;
    this.height = Math.max(60, ...nodes.map((node) => node.y + node.height / 2)) + 20;
    this.svg = shape(null, "svg", { viewBox: `-10 -10 ${this.width} ${this.height}`, role: "group", "aria-label": "graph of the model" });
    const arrow = shape(shape(this.svg, "defs"), "marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
    shape(arrow, "path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" });
    this.groups = new Map();
    for (const group of clusters) this.drawCluster(group, at.get(group.id));
    this.lines = lines.map(({ edge, points }) => {
      const path = shape(this.svg, "path", { class: `edge${edge.crosses ? " crosses" : ""}`, d: curve(points), "marker-end": "url(#arrow)" });
      shape(path, "title", {}, `${count(edge.values, "value")}${edge.crosses ? ", between devices" : ""}`);
      return { ...edge, path };
    });
    for (const box of boxes) this.drawBox(box, at.get(box.id));
    this.boxes = boxes;
    this.setZoom(this.zoom);
    this.place.replaceChildren(this.svg);
    this.paint();
    if (this.chosen) this.mark(this.chosen);
  }

  title(item) { return clip(item.children ? item.label : item.row.op === item.label ? item.label : `${item.row.op} ${item.label}`, 38); }
  under(item) {
    const { sum } = item;
    return item.children ? `${count(sum.nodes, "node")}, ${micros(sum.us)}` : `${micros(sum.us)} ${(item.row.shape ?? []).join("×")}`;
  }

  drawBox(box, { x, y, width, height }) {
    const opens = Boolean(box.children);
    const group = shape(this.svg, "g", { class: `box${opens ? " group" : ""}`, tabindex: 0, role: "button", "data-id": box.id,
      "aria-label": `${this.title(box)}, ${this.under(box)}`, "aria-expanded": opens ? "false" : undefined,
      onclick: () => this.choose(box), ondblclick: () => opens && this.toggle(box) });
    const left = x - width / 2, top = y - height / 2;
    shape(group, "title", {}, `${box.children ? box.id.slice(1) : box.row.node}`);
    shape(group, "rect", { class: "face", x: left, y: top, width, height, rx: 5 });
    shape(group, "text", { x, y: y - 3, "text-anchor": "middle" }, (opens ? "▸ " : "") + this.title(box));
    shape(group, "text", { x, y: y + 12, "text-anchor": "middle", class: "soft" }, this.under(box));
    let from = left + 3;
    for (const [device, [, us]] of opens ? Object.entries(box.sum.on) : []) {
      const share = (width - 6) * us / (box.sum.us || 1);
      if (share > 0.5) shape(group, "rect", { x: from, y: top + height - 5, width: share, height: 4, fill: `var(--d${this.order[device]})`, stroke: "var(--soft)", "stroke-width": 0.4 });
      from += share;
    }
    this.groups.set(box.id, { element: group, item: box });
  }

  drawCluster(cluster, { x, y, width, height }) {
    const group = shape(this.svg, "g", { class: "box cluster", tabindex: 0, role: "button", "data-id": cluster.id, "aria-expanded": "true",
      "aria-label": `${cluster.label}, open`, onclick: () => this.choose(cluster), ondblclick: () => this.toggle(cluster) });
    shape(group, "rect", { class: "face", x: x - width / 2, y: y - height / 2, width, height, rx: 6 });
    shape(group, "text", { x: x - width / 2 + 6, y: y - height / 2 - 2 }, clip(`▾ ${cluster.label}`, Math.max(6, Math.floor(width / 7))));
    this.groups.set(cluster.id, { element: group, item: cluster });
  }

  paint() {
    const most = Math.max(1e-9, ...this.boxes.map((box) => box.sum.us));
    for (const { element, item } of this.groups.values()) {
      if (!element.classList.contains("cluster")) element.querySelector(".face").style.fill = this.colour(item, most);
    }
  }

  colour({ sum }, most) {
    if (this.mode === "time") return `color-mix(in oklab, var(--hot) ${(85 * Math.sqrt(sum.us / most)).toFixed(0)}%, var(--back))`;
    if (this.mode === "noise") {
      if (!Number.isFinite(sum.noise)) return "var(--none)";
      const good = Math.min(1, Math.max(0, (sum.noise - NOISY_DB) / (QUIET_DB - NOISY_DB)));
      return `color-mix(in oklab, var(--good) ${(100 * good).toFixed(0)}%, var(--hot))`;
    }
    const on = Object.keys(sum.on).filter((device) => sum.on[device][0]);
    return on.length === 1 ? `var(--d${this.order[on[0]]})` : "var(--none)";
  }

  toggle(group) {
    if (this.open.has(group.id)) this.open.delete(group.id);
    else this.open.add(group.id);
    this.chosen = group;
    this.draw();
    this.show(group.id, true);
  }

  /** Opens all modules above an item, marks it, and brings it into view. */
  reveal(item) {
    const closed = ancestors(item).filter((group) => !this.open.has(group.id));
    for (const group of closed) this.open.add(group.id);
    this.chosen = item;
    if (closed.length) this.draw();
    this.choose(item);
    this.show(item.id, false);
  }

  choose(item) {
    this.chosen = item;
    this.mark(item);
    this.tell(item);
  }

  mark(item) {
    for (const { element } of this.groups.values()) element.classList.remove("chosen");
    this.groups.get(item.id)?.element.classList.add("chosen");
    for (const { from, to, path } of this.lines) path.classList.toggle("near", from === item.id || to === item.id);
  }

  show(id, focus) {
    const found = this.groups.get(id);
    if (!found) return;
    const face = found.element.querySelector(".face"), scale = this.zoom;
    const [x, y] = ["x", "y"].map((key) => Number(face.getAttribute(key)) * scale);
    this.place.scrollTo(x - this.place.clientWidth / 3, y - this.place.clientHeight / 3);
    if (focus) found.element.focus({ preventScroll: true });
  }

  setZoom(zoom) {
    this.zoom = Math.min(4, Math.max(0.05, zoom));
    this.svg.setAttribute("width", this.width * this.zoom);
    this.svg.setAttribute("height", this.height * this.zoom);
  }

  fit() { this.setZoom(Math.min(1.2, (this.place.clientWidth - 10) / this.width, (this.place.clientHeight - 10) / this.height)); }

  onKey(event) {
    const id = event.target.getAttribute?.("data-id"), found = this.groups.get(id);
    if (found && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (found.item.children) this.toggle(found.item);
      this.choose(found.item);
    } else if (found && ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"].includes(event.key)) {
      event.preventDefault();
      this.step(found, event.key);
    }
  }

  /** To the nearest box in a direction. */
  step({ element }, key) {
    const middle = (one) => { const box = one.querySelector(".face").getBBox(); return [box.x + box.width / 2, box.y + box.height / 2]; };
    const [x, y] = middle(element), along = key === "ArrowDown" || key === "ArrowUp" ? 1 : 0, sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
    let best = null;
    for (const [id, { element: other }] of this.groups) {
      if (other === element || other.classList.contains("cluster")) continue;
      const at = middle(other), way = sign * (at[along] - [x, y][along]);
      if (way <= 1) continue;
      const far = way + 2 * Math.abs(at[1 - along] - [x, y][1 - along]);
      if (!best || far < best.far) best = { id, far };
    }
    if (best) this.show(best.id, true);
  }
}

/** A smooth line through points. */
function curve(points) {
  const text = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  let out = `M${text(points[0])}`;
  for (let k = 1; k < points.length - 1; ++k) {
    const next = points[k + 1], middle = k === points.length - 2 ? next : { x: (points[k].x + next.x) / 2, y: (points[k].y + next.y) / 2 };
    out += `Q${text(points[k])} ${text(middle)}`;
  }
  return points.length > 2 ? out : `${out}L${text(points[points.length - 1])}`;
}
