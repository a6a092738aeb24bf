/** What a query tab is called while it has no name of its own: by what is written in it. */

/** @typedef {import("./data_contract.js").DataTab} DataTab */

const UNNAMED = /^Query(?: \d+)?$/;
const READ = 4_000;
const LONGEST = 40;
const MOST_TABLES = 3;
const NAME = String.raw`(?:"[^"]+"|\u0060[^\u0060]+\u0060|\[[^\]]+\]|[\p{L}_][\p{L}\p{N}_$]*)`;
const PATH = `${NAME}(?:\\s*\\.\\s*${NAME})*`;
const TABLES = new RegExp(`\\b(?:from|join|into|update|table|view|index)\\s+(?:if\\s+(?:not\\s+)?exists\\s+)?(${PATH})`, "giu");
const WITH = new RegExp(`(?:\\bwith\\s+(?:recursive\\s+)?|,\\s*)(${NAME})\\s*(?:\\([^()]*\\)\\s*)?as\\s*(?:not\\s+)?(?:materialized\\s*)?\\(`, "giu");
const NOISE = /--[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)/g;

/** @param {DataTab} tab */
export const tabName = ({ kind, title, text }) =>
  (kind === "query" && UNNAMED.test(title) && text?.trim() ? nameOf(text) || title : title);

/** The first line if it is a comment; else the tables, after what is done to them.
 * @param {string} text */
export function nameOf(text) {
  const begin = text.slice(0, READ).trimStart();
  const comment = /^(?:--|;;)\s*(\S.*)/.exec(begin);
  if (comment) return cut(comment[1]);
  const plain = begin.replace(NOISE, " ").trim();
  const own = new Set([...plain.matchAll(WITH)].map(([, name]) => bare(name)));
  const tables = [...new Set([...plain.matchAll(TABLES)].map(([, path]) => bare(path)))].filter((name) => !own.has(name));
  const verb = /^[a-z]+/i.exec(plain)?.[0].toLowerCase() ?? "";
  if (!tables.length) return cut(plain);
  const names = tables.slice(0, MOST_TABLES).join(", ") + (tables.length > MOST_TABLES ? " …" : "");
  return cut(verb === "select" || verb === "with" ? names : `${verb} ${names}`);
}

/** The last part of a path, without its quotes. @param {string} path */
const bare = (path) => (/(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[^\s."`[\]]+)$/u.exec(path)?.[0] ?? path).replace(/^["`[]|["`\]]$/g, "");

/** @param {string} text */
function cut(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1).trimEnd()}…` : line;
}
