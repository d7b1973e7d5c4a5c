// The time line: a lane a device, a span a layer. Spans that would be narrower than a pixel are drawn together.

const LANE = 46, LABEL = 110, MOST_DEAREST = 8;

/** Spans by device: of a run where the page has one, else what was planned, its nodes by their predicted shares. */
function spansOf(model) {
  const { timeline, subgraphs } = model.report;
  if (timeline) return timeline;
  const out = [];
  const us = subgraphs.map(() => 0);
  for (const row of model.rows) us[row.subgraph] += row.into ? 0 : row.predicted_us;
  const at = subgraphs.map((part) => part.start_us);
  for (const row of model.rows) {
    if (row.into) continue;
    const part = subgraphs[row.subgraph], length = part.finish_us - part.start_us;
    const own = us[row.subgraph] > 0 ? length * row.predicted_us / us[row.subgraph] : length;
    out.push({ device: row.device, node: row.node, start_us: at[row.subgraph], us: own });
    at[row.subgraph] += own;
  }
  return out;
}

/** Round numbers along a line of `length`, about `most` of them. */
function ticks(length, most) {
  const rough = length / most, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough) || 1;
  return Array.from({ length: Math.floor(length / step + 1e-9) + 1 }, (_, k) => k * step);
}

function drawTimeline(model, width, choose) {
  const spans = spansOf(model), end = Math.max(1e-9, ...spans.map((span) => span.start_us + span.us));
  const scale = (width - LABEL - 24) / end, bottom = model.devices.length * LANE;
  const svg = shape(null, "svg", { width, height: bottom + 22, role: "img", "aria-label": `time line of ${micros(end)}` });
  for (const us of ticks(end, Math.max(2, width / 130))) {
    const x = LABEL + us * scale;
    shape(svg, "line", { x1: x, x2: x, y1: 0, y2: bottom, stroke: "var(--line)" });
    shape(svg, "text", { x, y: bottom + 15, class: "soft", "text-anchor": "middle" }, end >= 1e4 ? `${(us / 1e3).toLocaleString("en")} ms` : `${us.toLocaleString("en")} µs`);
  }
  model.devices.forEach((device, lane) => {
    const y = lane * LANE + 6;
    shape(svg, "text", { x: 6, y: y + 22 }, clip(device, 16));
    let open = null;
    const mine = spans.filter((span) => span.device === device).sort((a, b) => a.start_us - b.start_us);
    for (const span of mine) {
      const from = LABEL + span.start_us * scale, to = from + span.us * scale;
      if (open && from - open.to < 0.5 && open.to - open.from < 1) {
        open.to = to;
        open.spans.push(span);
      } else {
        if (open) drawSpan(svg, open, y, lane, choose);
        open = { from, to, spans: [span] };
      }
    }
    if (open) drawSpan(svg, open, y, lane, choose);
  });
  return svg;
}

function drawSpan(svg, { from, to, spans }, y, lane, choose) {
  const us = spans.reduce((sum, span) => sum + span.us, 0), [first] = spans;
  const title = spans.length === 1 ? `${first.node}: ${micros(us)}` : `${count(spans.length, "node")} from ${first.node}: ${micros(us)}`;
  const stall = spans.reduce((sum, span) => sum + (span.stall_us ?? 0), 0);
  const group = shape(svg, "g", { onclick: () => choose(first.node) }, shape(null, "title", {}, title + (stall ? `, stalled ${micros(stall)}` : "")));
  const width = Math.max(0.7, to - from);
  shape(group, "rect", { class: width > 3 ? "span" : "", x: from, y, width, height: 34, fill: `var(--d${lane % 5})` });
  if (stall) shape(group, "rect", { x: from, y: y + 28, width: Math.min(width, width * stall / us), height: 6, fill: "var(--hot)" });
  if (width > 46) shape(group, "text", { x: from + 4, y: y + 21, "pointer-events": "none" }, clip(first.node, Math.floor((width - 6) / 6.4)));
}

/** The section: the line, and the nodes and operators that take the most. */
function showTime(model, section, choose) {
  const lanes = tag("div", { class: "lanes" });
  let zoom = 1;
  const draw = () => lanes.replaceChildren(drawTimeline(model, Math.max(320, lanes.clientWidth - 4) * zoom, choose));
  const times = (factor) => { zoom = Math.min(64, Math.max(1, zoom * factor)); draw(); };
  const said = model.report.timeline ? "one run, each device on its own time" : "as planned: predicted times";
  section.append(tag("div", { class: "bar" }, tag("span", { class: "hint" }, said), tag("span", { class: "keys" },
    tag("button", { onclick: () => times(0.5), "aria-label": "shorter" }, "−"), " ", tag("button", { onclick: () => times(2), "aria-label": "longer" }, "+"))), lanes);
  draw();
  addEventListener("resize", draw);

  const total = model.root.sum.us || 1;
  const bar = (us) => tag("span", { class: "share", style: `width:${(8 * us / total).toFixed(2)}rem`, title: `${(100 * us / total).toFixed(1)} %` });
  const dearest = [...model.nodes].sort((a, b) => b.sum.us - a.sum.us).slice(0, MOST_DEAREST);
  const nodes = dearest.map(({ row }) => [nodeLink(row.node, choose), row.op, row.device, timeOf(row), bar(timeOf(row))]);
  const byOp = new Map();
  for (const row of model.rows) {
    const key = `${row.op}\n${row.device}`, sum = byOp.get(key) ?? [row.op, row.device, 0, 0];
    sum[2] += 1;
    sum[3] += timeOf(row);
    byOp.set(key, sum);
  }
  const ops = [...byOp.values()].sort((a, b) => b[3] - a[3]).slice(0, MOST_DEAREST).map((row) => [...row, bar(row[3])]);
  section.append(tag("div", { class: "columns" }, tableOf(["node", "operator", "on", "µs", "share"], nodes, "There is no node."),
    tableOf(["operator", "on", "nodes", "µs", "share"], ops, "")));
}

const nodeLink = (name, choose) => tag("button", { class: "link", onclick: () => choose(name) }, name);
