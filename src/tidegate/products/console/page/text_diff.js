/** What differs between two texts, line by line. Pure. */

/** @typedef {{ kind: "same" | "old" | "new", text: string }} Line */

/** Lines that are compared each with each: more are shown as one block that goes and one that comes. */
const MOST_CELLS = 1_000_000;

/** @param {string} before @param {string} after @returns {Line[]} */
export function differences(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const middle = compared(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return [...lines("same", old.slice(0, start)), ...middle, ...lines("same", end ? old.slice(-end) : [])];
}

/** @param {Line["kind"]} kind @param {string[]} texts @returns {Line[]} */
const lines = (kind, texts) => texts.map((text) => ({ kind, text }));

/** The longest common lines stay. @param {string[]} old @param {string[]} now @returns {Line[]} */
function compared(old, now) {
  const width = now.length + 1;
  if ((old.length + 1) * width > MOST_CELLS) return [...lines("old", old), ...lines("new", now)];
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const found = /** @type {Line[]} */ ([]);
  for (let [i, j] = [0, 0]; i < old.length || j < now.length;) {
    if (i < old.length && j < now.length && old[i] === now[j]) (found.push({ kind: "same", text: old[i] }), i += 1, j += 1);
    else if (j >= now.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      found.push({ kind: "old", text: old[i] });
      i += 1;
    } else {
      found.push({ kind: "new", text: now[j] });
      j += 1;
    }
  }
  return found;
}
