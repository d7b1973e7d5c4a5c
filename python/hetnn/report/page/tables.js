// Reasons, what-if, rewrites, and the tables that are opened on demand.

const MOST_LINKS = 200;

function links(names, choose) {
  const out = tag("div");
  names.slice(0, MOST_LINKS).forEach((name, k) => out.append(k ? ", " : "", nodeLink(name, choose)));
  if (names.length > MOST_LINKS) out.append(` and ${whole(names.length - MOST_LINKS)} more`);
  return out;
}

/** The reasons of one label together, those whose nodes take the most time first. */
function groupReasons(model) {
  const groups = new Map();
  for (const row of model.report.not_on_preferred) {
    const place = model.producer.get(row.node);
    const us = place === undefined ? 0 : timeOf(model.rows[place]);
    for (const reason of row.reasons) {
      const key = `${reason.label}\n${reason.device}`;
      const group = groups.get(key) ?? { label: reason.label, texts: new Set(), names: [], ops: new Set(), us: 0 };
      group.texts.add(reason.text);
      group.names.push(row.node);
      group.ops.add(row.op);
      group.us += us;
      groups.set(key, group);
    }
  }
  return [...groups.values()].sort((a, b) => b.us - a.us);
}

function showReasons(model, section, choose) {
  const groups = groupReasons(model);
  if (!groups.length) section.append(tag("p", { class: "none" }, "Every node is on the accelerator, or there is none."));
  for (const group of groups) {
    const [text] = group.texts, others = group.texts.size - 1;
    const title = `${count(group.names.length, "node")}, ${micros(group.us)}: ${text}${others ? `, and ${whole(others)} like it` : ""} (${group.label})`;
    section.append(folded(title, () => {
      const out = tag("div", {}, tag("p", { class: "hint" }, `operators: ${[...group.ops].join(", ")}`));
      out.append(links(group.names, choose));
      return out;
    }));
  }
  const gains = model.report.what_if ?? [], less = gains.filter((row) => row.gain_us >= 0.05);
  if (!gains.length) return;
  section.append(tag("h2", {}, "What if an accelerator had it"), tableOf(["operator", "device", "µs less", "nodes"],
    less.map((row) => [row.support, row.device, row.gain_us, row.nodes.length]), "No operator alone makes the plan faster."));
  const idle = gains.filter((row) => row.gain_us < 0.05).map((row) => row.support);
  if (less.length && idle.length) section.append(tag("p", { class: "hint" }, `nothing gained alone by ${[...new Set(idle)].join(", ")}`));
}

/** A rewritten node as it was written, and beside it what took its place. */
function pairOf(model, row, choose) {
  const made = model.rows.filter(({ node, made_from: from }) => node === row.node || node.startsWith(`${row.node}.`) || from?.includes(row.node));
  const after = tag("div", {}, tag("strong", {}, micros(row.predicted_us_after)), ` ${row.form || row.rule}`, tag("br"));
  made.forEach((one, k) => after.append(k ? " → " : "", nodeLink(one.node, choose), ` ${one.op} on ${one.device}`));
  const saved = `${whole(row.bytes_avoided)} bytes and ${count(row.launches_avoided, "launch").replace(/hs$/, "hes")} avoided`;
  after.append(tag("div", { class: "hint" }, saved));
  const before = tag("div", {}, tag("strong", {}, micros(row.predicted_us_before)), ` ${row.op} '${row.node}'`, tag("div", { class: "hint" }, row.why));
  return tag("div", { class: "pair" }, before, after);
}

function showMore(model, section, choose) {
  const { report } = model, { rewrites, fusions, crossings, subgraphs, passes } = report;
  if (rewrites.length) {
    section.append(tag("h2", {}, `Rewritten: ${count(rewrites.length, "node")}, as written and as placed`));
    for (const row of rewrites.slice(0, 20)) section.append(pairOf(model, row, choose));
    if (rewrites.length > 20) {
      section.append(folded(`${whole(rewrites.length - 20)} more`, () => tag("div", {}, ...rewrites.slice(20).map((row) => pairOf(model, row, choose)))));
    }
  }
  const devices = model.devices.map((name) => [name, report.nodes_on[name], report.macs_on[name] ?? 0,
    subgraphs.filter((part) => part.device === name).length, model.root.sum.on[name]?.[1] ?? 0]);
  section.append(tag("h2", {}, "Devices"), tableOf(["device", "nodes", "multiply-accumulates", "subgraphs", "µs of nodes"], devices, "There is no node."));
  section.append(folded(`subgraphs, in order: ${whole(subgraphs.length)}`, () => tableOf(["", "device", "nodes", "from µs", "to µs", "which"],
    subgraphs.map((part, k) => [k, part.device, part.nodes.length, part.start_us, part.finish_us, links(part.nodes.slice(0, 12), choose)]), "There is none.")));
  section.append(folded(`crossings between devices: ${whole(crossings.length)}`, () => tableOf(["value", "from", "to", "bytes"],
    crossings.map((row) => [row.value, row.from, row.to, row.bytes]), "Nothing crosses.")));
  section.append(folded(`fused: ${count(fusions.length, "group")}`, () => tableOf(["into", "nodes", "bytes before", "bytes after"],
    fusions.map((row) => [nodeLink(row.into, choose), row.nodes.join(", "), row.bytes_before, row.bytes_after]), "Nothing was fused.")));
  if (report.candidates?.length) {
    section.append(folded(`plans that were weighed: ${whole(report.candidates.length)}`, () => tableOf(["plan", "µs"], report.candidates.map((row) => [row.name, row.cost_us]), "")));
  }
  if (passes) section.append(folded("passes", () => tableOf(["pass", "ms"], passes.map((row) => [row.name, row.ms]), "")));
}
