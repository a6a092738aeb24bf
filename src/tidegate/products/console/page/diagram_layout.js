/**
 * Where the tables of a diagram stand: related ones by dagre, each group by itself, and all groups
 * packed to the width. Imports nothing.
 */

/** @typedef {import("./diagram_contract.js").Block} Block */
/** @typedef {import("./diagram_contract.js").Dagre} Dagre */
/** @typedef {import("./diagram_contract.js").Size} Size */
/** @typedef {import("./diagram_contract.js").Spot} Spot */

const [GAP, RANK_GAP, BLOCK_GAP] = [24, 64, 60];
const SHAPE = 1.7;
const MOST_IN_ROW = 5;

/** Places for all tables. @param {Dagre} dagre @param {Size[]} sizes @param {[number, number][]} links
 * @returns {Spot[]} */
export function arrange(dagre, sizes, links) {
  const groups = groupsOf(sizes.length, links);
  const alone = groups.filter((group) => group.length === 1).flat();
  const blocks = groups.filter((group) => group.length > 1).map((group) => blockOf(dagre, group, sizes, links));
  const width = widthOf(blocks, alone.map((index) => sizes[index]));
  const { at, bottom } = pack(blocks, width);
  if (alone.length) {
    const top = bottom ? bottom + BLOCK_GAP : 0;
    for (const [index, [x, y]] of gridOf(alone, sizes, width).at) at.set(index, [x, y + top]);
  }
  return sizes.map((_, index) => /** @type {Spot} */ (at.get(index)));
}

/** The tables that links join, directly or over others. @param {number} count @param {[number, number][]} links */
export function groupsOf(count, links) {
  const root = Array.from({ length: count }, (_, index) => index);
  /** @param {number} index */
  const find = (index) => {
    while (root[index] !== index) index = root[index] = root[root[index]];
    return index;
  };
  for (const [from, to] of links) root[find(from)] = find(to);
  /** @type {Map<number, number[]>} */
  const groups = new Map();
  for (let index = 0; index < count; index += 1) {
    const key = find(index);
    groups.set(key, [...(groups.get(key) ?? []), index]);
  }
  return [...groups.values()];
}

/** One group, in the direction that gives the better shape.
 * @param {Dagre} dagre @param {number[]} group @param {Size[]} sizes @param {[number, number][]} links @returns {Block} */
function blockOf(dagre, group, sizes, links) {
  const inside = new Set(group);
  const own = uniqueLinks(links.filter(([from]) => inside.has(from)));
  const leaves = leavesOf(own);
  const first = layOut(dagre, "LR", group, sizes, own, leaves);
  if (isFar(first) < Math.log(2.5)) return first;
  const second = layOut(dagre, "TB", group, sizes, own, leaves);
  return isFar(second) < isFar(first) ? second : first;
}

/** How far a block is from the shape of a screen. @param {Block} block */
const isFar = ({ w, h }) => Math.abs(Math.log(w / h / SHAPE));

/** @param {[number, number][]} links */
function uniqueLinks(links) {
  const known = new Map(links.filter(([from, to]) => from !== to).map((link) => [`${link}`, link]));
  return [...known.values()];
}

/** Many tables that refer to the same one and have no other link: they stand together as a block, since
 * one rank of them would be a tower. @param {[number, number][]} links @returns {number[][]} */
function leavesOf(links) {
  /** @type {Map<number, [number, boolean][]>} */
  const ends = new Map();
  for (const [from, to] of links) {
    ends.set(from, [...(ends.get(from) ?? []), [to, true]]);
    ends.set(to, [...(ends.get(to) ?? []), [from, false]]);
  }
  /** @type {Map<string, number[]>} */
  const around = new Map();
  for (const [index, others] of ends) {
    if (others.length === 1) around.set(`${others[0]}`, [...(around.get(`${others[0]}`) ?? []), index]);
  }
  return [...around.values()].filter((leaves) => leaves.length > MOST_IN_ROW);
}

/** @param {Dagre} dagre @param {"LR" | "TB"} direction @param {number[]} group @param {Size[]} sizes
 * @param {[number, number][]} links @param {number[][]} leaves @returns {Block} */
function layOut(dagre, direction, group, sizes, links, leaves) {
  const graph = new dagre.Graph();
  // Many keys take much room between the tables unless they may lie close.
  graph.setGraph({ rankdir: direction, nodesep: GAP, edgesep: 1, ranksep: RANK_GAP, acyclicer: "greedy" }).setDefaultEdgeLabel(() => ({}));
  /** @type {Map<number, { name: string, block: Block }>} */
  const inBlock = new Map();
  leaves.forEach((members, number) => {
    const area = members.reduce((sum, index) => sum + (sizes[index].w + GAP) * (sizes[index].h + GAP), 0);
    const block = gridOf(members, sizes, Math.sqrt(area * SHAPE));
    const name = `block ${number}`;
    graph.setNode(name, { width: block.w, height: block.h });
    for (const index of members) inBlock.set(index, { name, block });
  });
  for (const index of group) {
    if (!inBlock.has(index)) graph.setNode(String(index), { width: sizes[index].w, height: sizes[index].h });
  }
  /** @param {number} index */
  const nameOf = (index) => inBlock.get(index)?.name ?? String(index);
  // What is referred to comes first: keys lead from the right to the left, or upwards.
  for (const [from, to] of links) graph.setEdge(nameOf(to), nameOf(from));
  dagre.layout(graph);
  /** @type {Map<number, Spot>} */
  const at = new Map();
  for (const index of group) {
    const place = inBlock.get(index);
    const { x, y, width, height } = graph.node(nameOf(index));
    const [inX, inY] = place?.block.at.get(index) ?? [0, 0];
    at.set(index, [Math.round(x - width / 2 + inX), Math.round(y - height / 2 + inY)]);
  }
  return trimmed(at, sizes);
}

/** The block with its upper left corner at 0. @param {Map<number, Spot>} at @param {Size[]} sizes @returns {Block} */
function trimmed(at, sizes) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [index, [x, y]] of at) {
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x + sizes[index].w), Math.max(bottom, y + sizes[index].h)];
  }
  for (const [index, [x, y]] of at) at.set(index, [x - left, y - top]);
  return { at, w: right - left, h: bottom - top };
}

/** Tables in columns of one width, each into the shortest column.
 * @param {number[]} members @param {Size[]} sizes @param {number} width @returns {Block} */
function gridOf(members, sizes, width) {
  const column = Math.max(...members.map((index) => sizes[index].w)) + GAP;
  const heights = Array.from({ length: Math.max(1, Math.min(members.length, Math.floor((width + GAP) / column))) }, () => 0);
  /** @type {Map<number, Spot>} */
  const at = new Map();
  for (const index of members) {
    const shortest = heights.indexOf(Math.min(...heights));
    at.set(index, [shortest * column, heights[shortest]]);
    heights[shortest] += sizes[index].h + GAP;
  }
  return trimmed(at, sizes);
}

/** How wide the whole is to be. @param {Block[]} blocks @param {Size[]} alone */
function widthOf(blocks, alone) {
  const area = [...blocks, ...alone].reduce((sum, { w, h }) => sum + (w + BLOCK_GAP) * (h + BLOCK_GAP), 0);
  return Math.max(Math.sqrt(area * SHAPE), ...blocks.map(({ w }) => w));
}

/** Blocks in rows, the highest first; a block that fits beside an earlier row's end goes there.
 * @param {Block[]} blocks @param {number} width */
function pack(blocks, width) {
  /** @type {{ x: number, y: number, h: number }[]} */
  const rows = [];
  /** @type {Map<number, Spot>} */
  const at = new Map();
  let bottom = 0;
  for (const block of [...blocks].sort((one, other) => other.h - one.h)) {
    let row = rows.find(({ x, h }) => x + block.w <= width && block.h <= h);
    if (!row) {
      row = { x: 0, y: rows.length ? bottom + BLOCK_GAP : 0, h: block.h };
      rows.push(row);
      bottom = row.y + row.h;
    }
    for (const [index, [x, y]] of block.at) at.set(index, [row.x + x, row.y + y]);
    row.x += block.w + BLOCK_GAP;
  }
  return { at, bottom };
}
