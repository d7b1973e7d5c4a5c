// The nodes of a report, and the tree of modules over them. Long lists of a module are cut into ranges, so that nothing that
// opens is large.

const MOST_CHILDREN = 48;
const LEAST_RANGE = 24;

/** Microseconds of a node: as measured in a run, where what runs within another node has none of its own; else predicted. */
const timeOf = (row) => row.time_us;

/** Path of a node in the tree: its module, else its own name's parts before the last. */
function pathOf(row) {
  if (row.module) return row.module.split(/[./]/).filter(Boolean);
  return row.node.split(/[./]/).filter(Boolean).slice(0, -1);
}

function readModel(report) {
  const rows = report.graph, ran = rows.some((row) => row.measured_us !== undefined);
  for (const row of rows) row.time_us = (ran ? row.measured_us : row.predicted_us) ?? 0;
  const root = { id: "", label: "", kids: new Map(), children: [], parent: null };
  const nodes = rows.map((row, index) => ({ id: `n${index}`, index, row, label: row.node, parent: null }));
  for (const node of nodes) {
    let group = root;
    for (const part of pathOf(node.row)) {
      if (!group.kids.has(part)) {
        const made = { id: `${group.id}/${part}`, label: part, kids: new Map(), children: [], parent: group };
        group.kids.set(part, made);
        group.children.push(made);
      }
      group = group.kids.get(part);
    }
    group.children.push(node);
  }
  const devices = Object.keys(report.nodes_on);
  settle(root, null);
  add(root, devices);
  return { report, rows, root, nodes, devices, groups: groupsOf(root), producer: new Map(rows.map((row, k) => [row.node, k])) };
}

/** A group of one child is that child; a long list becomes a list of ranges. */
function settle(group, parent) {
  group.parent = parent;
  group.children = group.children.map((child) => {
    while (child.children && child.children.length === 1) {
      const [only] = child.children;
      if (only.children) only.label = `${child.label}.${only.label}`;
      child = only;
    }
    return child;
  });
  if (group.children.length > MOST_CHILDREN) {
    const size = Math.max(LEAST_RANGE, Math.ceil(group.children.length / MOST_CHILDREN));
    const all = group.children;
    group.children = [];
    for (let k = 0; k < all.length; k += size) {
      const part = all.slice(k, k + size);
      const label = part.length === 1 ? part[0].label : `${part[0].label} … ${part[part.length - 1].label}`;
      group.children.push(part.length === 1 ? part[0] : { id: `${group.id}:${k}+${size}`, label, children: part });
    }
  }
  for (const child of group.children) {
    if (child.children) settle(child, group);
    else child.parent = group;
  }
}

/** What a group's nodes are together: numbers, time and nodes by device, the least dB over noise. */
function add(group, devices) {
  const sum = { nodes: 0, us: 0, macs: 0, noise: Infinity, on: Object.fromEntries(devices.map((name) => [name, [0, 0]])), first: Infinity };
  for (const child of group.children) {
    if (child.children) add(child, devices);
    else {
      const { row } = child;
      child.sum = { nodes: 1, us: timeOf(row), macs: row.macs ?? 0, noise: row.noise_db ?? Infinity, first: child.index, on: { [row.device]: [1, timeOf(row)] } };
    }
    sum.nodes += child.sum.nodes;
    sum.us += child.sum.us;
    sum.macs += child.sum.macs;
    sum.noise = Math.min(sum.noise, child.sum.noise);
    sum.first = Math.min(sum.first, child.sum.first);
    for (const [device, [count, us]] of Object.entries(child.sum.on)) {
      sum.on[device] ??= [0, 0];
      sum.on[device][0] += count;
      sum.on[device][1] += us;
    }
  }
  group.sum = sum;
}

function groupsOf(root) {
  const found = new Map();
  const walk = (group) => {
    found.set(group.id, group);
    for (const child of group.children) if (child.children) walk(child);
  };
  walk(root);
  return found;
}

/** What is drawn while the groups of `open` are open: boxes, clusters around them, and the edges between boxes. */
function visible(model, open) {
  const boxes = [], clusters = [];
  const boxOf = new Array(model.nodes.length);
  const cover = (item, id) => {
    if (item.children) for (const child of item.children) cover(child, id);
    else boxOf[item.index] = id;
  };
  const walk = (group) => {
    for (const child of group.children) {
      if (child.children && open.has(child.id)) {
        clusters.push(child);
        walk(child);
      } else {
        boxes.push(child);
        cover(child, child.id);
      }
    }
  };
  walk(model.root);
  const edges = new Map();
  model.rows.forEach((row, index) => {
    for (const name of row.inputs) {
      const from = model.producer.get(name);
      if (from === undefined || boxOf[from] === boxOf[index]) continue;
      const key = `${boxOf[from]}\n${boxOf[index]}`;
      const edge = edges.get(key) ?? { from: boxOf[from], to: boxOf[index], values: 0, crosses: false };
      edge.values += 1;
      edge.crosses ||= model.rows[from].device !== row.device;
      edges.set(key, edge);
    }
  });
  return { boxes, clusters, edges: [...edges.values()] };
}

/** The groups above a node or group, the outermost first. */
function ancestors(item) {
  const out = [];
  for (let group = item.parent; group && group.id !== ""; group = group.parent) out.unshift(group);
  return out;
}
