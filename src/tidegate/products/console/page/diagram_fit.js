/** Places for the new tables of a diagram, of which the others stay where they are. Imports nothing. */

/** @typedef {import("./diagram_contract.js").Size} Size */
/** @typedef {import("./diagram_contract.js").Spot} Spot */

const [GAP, BLOCK_GAP, STEP] = [24, 60, 48];

/** Places where some tables have one already: those stay, and each other one comes near its neighbours,
 * or below all. @param {Size[]} sizes @param {[number, number][]} links @param {(Spot | null)[]} kept
 * @returns {Spot[]} */
export function fitIn(sizes, links, kept) {
  const found = [...kept];
  const near = sizes.map(() => /** @type {number[]} */ ([]));
  for (const [from, to] of links) (near[from].push(to), near[to].push(from));
  for (let index = 0; index < sizes.length; index += 1) {
    if (found[index]) continue;
    const beside = near[index].map((other) => found[other]).filter((spot) => spot !== null);
    const bottom = Math.max(0, ...found.map((spot, at) => (spot ? spot[1] + sizes[at].h + BLOCK_GAP : 0)));
    const left = Math.min(...found.map((spot) => (spot ? spot[0] : Infinity)));
    const wanted = /** @type {Spot} */ (beside.length
      ? [Math.round(mean(beside.map(([x]) => x))), Math.round(mean(beside.map(([, y]) => y)))]
      : [Number.isFinite(left) ? left : 0, bottom]);
    found[index] = freeSpot(wanted, sizes[index], found, sizes);
  }
  return /** @type {Spot[]} */ (found);
}

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The nearest place around one that is free, looked for in growing squares.
 * @param {Spot} wanted @param {Size} size @param {(Spot | null)[]} found @param {Size[]} sizes @returns {Spot} */
function freeSpot(wanted, size, found, sizes) {
  /** @param {number} x @param {number} y */
  const isFree = (x, y) => found.every((spot, at) => !spot || x + size.w + GAP <= spot[0] || spot[0] + sizes[at].w + GAP <= x ||
    y + size.h + GAP <= spot[1] || spot[1] + sizes[at].h + GAP <= y);
  for (let ring = 0; ring < 400; ring += 1) {
    for (let step = -ring; step <= ring; step += 1) {
      for (const [dx, dy] of [[ring, step], [-ring, step], [step, ring], [step, -ring]]) {
        const [x, y] = [wanted[0] + dx * STEP, wanted[1] + dy * STEP];
        if (isFree(x, y)) return [x, y];
      }
    }
  }
  return [wanted[0], Math.max(...found.map((spot, at) => (spot ? spot[1] + sizes[at].h : 0))) + GAP];
}
