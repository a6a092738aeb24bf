/** What a line of the terminal asks for. Imports nothing.
 *
 * @typedef {{ kind: "meta", word: string, rest: string }
 *   | { kind: "begin", readsOnly: boolean }
 *   | { kind: "end", action: "commit" | "rollback" }
 *   | { kind: "mark", action: "savepoint" | "release" | "rollback to", name: string }
 *   | { kind: "statement", text: string }} Asked
 */

const NAME = '("(?:[^"]|"")+"|[\\p{L}_][\\p{L}\\p{N}_$]*)';
const BEGIN = /^(?:begin|start\s+transaction)(?:\s+(?:work|transaction))?(?:\s+(read\s+only|read\s+write))?\s*;?$/iu;
const COMMIT = /^(?:commit|end)(?:\s+(?:work|transaction))?\s*;?$/iu;
const ROLLBACK = /^(?:rollback|abort)(?:\s+(?:work|transaction))?\s*;?$/iu;
const MARKS = /** @type {const} */ ([
  ["savepoint", new RegExp(`^savepoint\\s+${NAME}\\s*;?$`, "iu")],
  ["release", new RegExp(`^release(?:\\s+savepoint)?\\s+${NAME}\\s*;?$`, "iu")],
  ["rollback to", new RegExp(`^rollback(?:\\s+(?:work|transaction))?\\s+to(?:\\s+savepoint)?\\s+${NAME}\\s*;?$`, "iu")],
]);

/** @param {string} text @param {boolean} sql whether the source speaks SQL @returns {Asked} */
export function read(text, sql) {
  const line = text.trim();
  const meta = /^\\(\S+)\s*(.*?)\s*;?$/su.exec(line);
  if (meta) return { kind: "meta", word: meta[1], rest: meta[2] };
  if (sql) {
    const begin = BEGIN.exec(line);
    if (begin) return { kind: "begin", readsOnly: /only/i.test(begin[1] ?? "") };
    if (COMMIT.test(line)) return { kind: "end", action: "commit" };
    if (ROLLBACK.test(line)) return { kind: "end", action: "rollback" };
    for (const [action, pattern] of MARKS) {
      const name = pattern.exec(line)?.[1];
      if (name) return { kind: "mark", action, name: name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase() };
    }
  }
  return { kind: "statement", text: line };
}

/** Whether Enter sends a text, or begins another line. In SQL a semicolon at the end sends; elsewhere
 * brackets that are all closed. @param {string} text @param {boolean} sql */
export function isWhole(text, sql) {
  const line = text.trim();
  if (!line || line.startsWith("\\")) return true;
  if (sql) return line.endsWith(";") || read(line, true).kind !== "statement";
  let open = 0;
  for (const sign of line.replace(/"(?:[^"\\]|\\.)*"/gsu, "")) open += "([{".includes(sign) ? 1 : ")]}".includes(sign) ? -1 : 0;
  return open <= 0;
}
