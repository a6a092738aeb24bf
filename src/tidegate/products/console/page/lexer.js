/**
 * Colours for lines that were typed since the server last judged the text: a light lexer, line by
 * line, so that only the lines that changed are read again. It decides nothing: what a statement
 * is, and what it may do, is the server's word.
 */

/** @typedef {[kind: string, text: string]} Token */
/** @typedef {(line: string, state: string, tokens: Token[] | null) => string} Lex */

const KEYWORDS = new Set((
  "add all alter analyze and any as asc attach auto_increment begin between by call cascade case cast check " +
  "collate column comment commit conflict constraint copy create cross current current_date " +
  "current_time current_timestamp database deallocate default deferrable delete desc describe " +
  "distinct do drop else end escape except exclude execute exists explain false fetch filter first " +
  "following for foreign from full function generated grant group having if ignore ilike in index " +
  "inner insert intersect interval into is isnull join key last lateral left like limit load lock " +
  "materialized merge natural no not notnull null nulls of offset on only or order outer over " +
  "partition pivot pragma preceding primary procedure qualify range recursive references regexp rename " +
  "replace restrict returning revoke right rollback row rows savepoint schema select set show similar some " +
  "start table tablesample temp temporary then to transaction trigger true truncate unbounded union unique " +
  "unpivot update use using vacuum values view virtual when where window with within without").split(" "));

const WORD = "[\\p{L}_][\\p{L}\\p{N}_$]*";
const NUMBER = "(?:0[xX][\\da-fA-F]+|\\d[\\d_]*(?:\\.\\d*)?(?:[eE][+-]?\\d+)?|\\.\\d+(?:[eE][+-]?\\d+)?)";

/** @param {boolean} hashes whether `#` begins a comment, as in MySQL */
const sqlPattern = (hashes) => new RegExp([
  `(?<comment>--.*${hashes ? "|#.*" : ""})`, "(?<block>/\\*)", "(?<quote>['\"`])",
  "(?<dollar>\\$(?:[\\p{L}_][\\p{L}\\p{N}_]*)?\\$)", "(?<cast>::)",
  `(?<parameter>[:@$]${WORD}|\\$\\d+|\\?\\d*)`, `(?<number>${NUMBER})`, `(?<word>${WORD})`,
  "(?<space>\\s+)", "(?<operator>[^\\s])",
].join("|"), "uy");

const QUOTES = /** @type {Record<string, RegExp>} */ ({
  "'": /(?:[^']|'')*(')?/y, '"': /(?:[^"]|"")*(")?/y, "`": /(?:[^`]|``)*(`)?/y,
});
const ESCAPED = /** @type {Record<string, RegExp>} */ ({
  "'": /(?:[^'\\]|''|\\.|\\$)*(')?/y, '"': /(?:[^"\\]|""|\\.|\\$)*(")?/y, "`": QUOTES["`"],
});

/** @param {string} dialect @returns {Lex} */
function sqlLexer(dialect) {
  const mysql = /^(mysql|mariadb)$/.test(dialect);
  const pattern = sqlPattern(mysql);
  const quotes = mysql ? ESCAPED : QUOTES;
  return (line, state, tokens) => {
    let at = 0;
    /** @param {string} kind @param {number} end */
    const take = (kind, end) => {
      if (end > at) tokens?.push([kind, line.slice(at, end)]);
      at = end;
    };
    // What is open at this place goes on until it ends, over lines too.
    const goOn = () => {
      if (state === "/*") {
        const end = line.indexOf("*/", at);
        take("comment", end < 0 ? line.length : end + 2);
        if (end >= 0) state = "";
      } else if (state[0] === "$") {
        const end = line.indexOf(state, at);
        take("string", end < 0 ? line.length : end + state.length);
        if (end >= 0) state = "";
      } else {
        const quote = quotes[state];
        quote.lastIndex = at;
        const found = /** @type {RegExpExecArray} */ (quote.exec(line));
        take(state === "'" ? "string" : "name", at + found[0].length);
        if (found[1]) state = "";
      }
    };
    if (state) goOn();
    while (at < line.length) {
      pattern.lastIndex = at;
      const found = pattern.exec(line);
      const groups = found?.groups;
      if (!found || !groups) {
        take("operator", line.length);
        break;
      }
      const end = at + found[0].length;
      if (groups.comment) take("comment", line.length);
      else if (groups.block || groups.quote || groups.dollar) {
        const from = at;
        state = groups.block ?? groups.quote ?? groups.dollar;
        const count = tokens?.length ?? 0;
        at = end;
        goOn();
        if (tokens) {
          // The opening mark belongs to what it opens.
          const kind = tokens[count]?.[0] ??
            (groups.block ? "comment" : groups.quote && groups.quote !== "'" ? "name" : "string");
          tokens.splice(count, tokens.length - count, [kind, line.slice(from, at)]);
        }
      } else if (groups.word) take(KEYWORDS.has(groups.word.toLowerCase()) ? "keyword" : "name", end);
      else if (groups.parameter) take("parameter", end);
      else if (groups.number) take("number", end);
      else take(groups.space ? "space" : "operator", end);
    }
    return state;
  };
}

const EDN = new RegExp([
  "(?<comment>;.*)", "(?<quote>\")", "(?<keyword>:[^\\s,()\\[\\]{}\";]+)",
  "(?<parameter>[?$%][^\\s,()\\[\\]{}\";]*)", "(?<number>[+-]?\\d[\\d._]*(?:[eE][+-]?\\d+)?[NM]?(?![^\\s,()\\[\\]{}\";]))",
  "(?<space>[\\s,]+)", "(?<operator>[()\\[\\]{}#'@^]|_(?!\\S))", "(?<name>[^\\s,()\\[\\]{}\";]+)", "(?<other>.)",
].join("|"), "uy");
const EDN_TEXT = /(?:[^"\\]|\\.|\\$)*(")?/y;

/** Queries of Datalog, as EDN. @type {Lex} */
const ednLexer = (line, state, tokens) => {
  let at = 0;
  /** @param {number} from */
  const string = (from) => {
    EDN_TEXT.lastIndex = at;
    const found = /** @type {RegExpExecArray} */ (EDN_TEXT.exec(line));
    at += found[0].length;
    if (at > from) tokens?.push(["string", line.slice(from, at)]);
    state = found[1] ? "" : '"';
  };
  if (state) string(0);
  while (at < line.length) {
    EDN.lastIndex = at;
    const found = EDN.exec(line);
    if (!found?.groups) break;
    const kind = Object.keys(found.groups).find((name) => found.groups?.[name]) ?? "other";
    const from = at;
    at += found[0].length;
    if (kind === "quote") string(from);
    else tokens?.push([kind === "other" ? "operator" : kind, found[0]]);
  }
  return state;
};

/** @param {string} language @param {string} dialect @returns {Lex} */
export const lexerOf = (language, dialect) => (language === "datalog" ? ednLexer : sqlLexer(dialect));

/** What begins a comment to the end of a line. @param {string} language */
export const commentMark = (language) => (language === "datalog" ? ";; " : "-- ");
