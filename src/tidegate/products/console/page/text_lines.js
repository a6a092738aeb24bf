/**
 * A text by lines, each with its colours. After an edit only the lines that changed are read again,
 * and those after them as far as a comment or a string that is open reaches.
 */

/** @typedef {import("./lexer.js").Token} Token */
/** One line. `state` is what is open where it begins. `served` are the server's colours.
 * @typedef {{ text: string, state: string, end: string, served: Token[] | null,
 *   guessed: Token[] | null }} Line */

const REACH_LINES = 400;

export class TextLines {
  text = "";
  /** @type {Line[]} */
  lines = [{ text: "", state: "", end: "", served: null, guessed: null }];
  /** Where each line begins. */
  starts = [0];
  #lex;

  /** @param {import("./lexer.js").Lex} lex */
  constructor(lex) {
    this.#lex = lex;
  }

  /** @param {string} text */
  update(text) {
    if (text === this.text) return;
    const old = this.lines;
    const parts = text.split("\n");
    const shorter = Math.min(old.length, parts.length);
    let same = 0;
    while (same < shorter && old[same].text === parts[same]) same += 1;
    let rest = 0;
    while (rest < shorter - same && old[old.length - 1 - rest].text === parts[parts.length - 1 - rest]) rest += 1;
    const made = parts.slice(same, parts.length - rest).map((part) => ({
      text: part, state: "?", end: "", served: null, guessed: null,
    }));
    this.lines = [...old.slice(0, same), ...made, ...old.slice(old.length - rest, old.length)];
    this.text = text;
    this.#relex(same, same + made.length);
    let start = 0;
    this.starts = this.lines.map((line) => {
      const at = start;
      start += line.text.length + 1;
      return at;
    });
  }

  /** Find what is open at each line, from one line on; past `until`, no further than it differs.
   * @param {number} from @param {number} until */
  #relex(from, until) {
    let state = from ? this.lines[from - 1].end : "";
    for (let at = from; at < this.lines.length; at += 1) {
      const line = this.lines[at];
      if (line.state === state) {
        if (at >= until) return;
      } else {
        line.served = null;
        line.guessed = null;
      }
      line.state = state;
      line.end = this.#lex(line.text, state, null);
      state = line.end;
    }
  }

  /** The colours of a text as the server has them; false if they are not for this text.
   * @param {[string, string][]} spans */
  serve(spans) {
    let length = 0;
    for (const [, part] of spans) length += part.length;
    if (length !== this.text.length) return false;
    let at = 0;
    let tokens = /** @type {Token[]} */ ([]);
    const served = [tokens];
    for (const [kind, part] of spans) {
      if (this.text.slice(at, at + part.length) !== part) return false;
      at += part.length;
      part.split("\n").forEach((piece, index) => {
        if (index) served.push((tokens = []));
        if (piece) tokens.push([kind, piece]);
      });
    }
    this.lines.forEach((line, index) => (line.served = served[index]));
    return true;
  }

  /** @param {number} index */
  tokensOf(index) {
    const line = this.lines[index];
    if (line.served) return line.served;
    return this.guessOf(index);
  }

  /** The tokens of the light lexer, which knows parameters. @param {number} index */
  guessOf(index) {
    const line = this.lines[index];
    if (!line.guessed) {
      line.guessed = [];
      this.#lex(line.text, line.state, line.guessed);
    }
    return line.guessed;
  }

  /** The line of an offset. @param {number} offset */
  lineAt(offset) {
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** "Line 3, column 7", counted from 1. @param {number} offset */
  placeOf(offset) {
    const line = this.lineAt(Math.min(offset, this.text.length));
    return { line: line + 1, column: offset - this.starts[line] + 1 };
  }

  /** The kind of the token that ends at an offset, or holds it. @param {number} offset */
  kindBefore(offset) {
    const line = this.lineAt(offset);
    let at = this.starts[line];
    for (const [kind, text] of this.guessOf(line)) {
      at += text.length;
      if (offset <= at) return kind;
    }
    return this.lines[line].end && this.lines[line].end !== "/*" ? "string" : this.lines[line].end ? "comment" : "space";
  }

  /** All tokens with their places, forwards or backwards, from the token at an offset; at most so
   * many lines. @param {number} offset @param {1 | -1} step @returns {Iterable<{ kind: string, text: string, at: number }>} */
  *walk(offset, step) {
    const first = this.lineAt(offset);
    for (let line = first; Math.abs(line - first) < REACH_LINES; line += step) {
      if (!this.lines[line]) return;
      let at = this.starts[line];
      const found = this.guessOf(line).map(([kind, text]) => {
        const token = { kind, text, at };
        at += text.length;
        return token;
      });
      for (const token of step > 0 ? found : found.reverse()) {
        if (step > 0 ? token.at >= offset : token.at < offset) yield token;
      }
    }
  }

  /** About the statement around an offset: to the semicolons next to it, or as far as the walk goes.
   * @param {number} offset @returns {[number, number]} */
  around(offset) {
    let [from, to] = [this.starts[Math.max(0, this.lineAt(offset) - REACH_LINES + 1)], this.text.length];
    for (const token of this.walk(offset, -1)) {
      if (token.kind === "operator" && token.text === ";") {
        from = token.at + 1;
        break;
      }
    }
    const last = this.lineAt(offset) + REACH_LINES;
    if (last < this.starts.length) to = this.starts[last];
    for (const token of this.walk(offset, 1)) {
      if (token.kind === "operator" && token.text === ";") {
        to = token.at;
        break;
      }
    }
    return [from, to];
  }

  /** The pair of brackets beside the caret, or null. @param {number} caret @returns {[number, number] | null} */
  brackets(caret) {
    for (const at of [caret - 1, caret]) {
      const character = this.text[at] ?? "";
      const pair = PAIRS[character];
      if (!pair || this.kindBefore(at + 1) !== "operator") continue;
      const step = "([{".includes(character) ? 1 : -1;
      let depth = 0;
      for (const token of this.walk(step > 0 ? at : at + 1, step)) {
        if (token.kind !== "operator") continue;
        if (token.text === character) depth += 1;
        else if (token.text === pair) depth -= 1;
        if (depth === 0) return at < token.at ? [at, token.at] : [token.at, at];
      }
    }
    return null;
  }
}

const PAIRS = /** @type {Record<string, string>} */ ({
  "(": ")", ")": "(", "[": "]", "]": "[", "{": "}", "}": "{",
});
