/** What the gate says about the text while it is typed: statements, colours, errors. Nothing runs. */

import { ApiError, errorText, post } from "./api.js";
import { computed, effect, onEnd, signal } from "./signals.js";

/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./query_contract.js").Judged} Judged */
/** @typedef {import("./query_contract.js").Judgement} Judgement */

const WAIT_MS = 220;
const WAIT_LONG_MS = 900;
const LONG_TEXT = 60_000;

const DOES = /** @type {Record<string, string>} */ ({
  read: "reads", write: "changes", destructive: "destroys data or structure of", admin: "administers",
});
const DOES_ALONE = /** @type {Record<string, string>} */ ({
  read: "reads no table", session: "is about this session", write: "changes data",
  destructive: "destroys data or structure", admin: "administers the database",
});

/** "reads orders, customers". @param {Judged} judged */
export function doesText({ effect, tables }) {
  const verb = DOES[effect];
  if (verb && tables.length) return `${verb} ${tables.join(", ")}`;
  return DOES_ALONE[effect] ?? "what it does is unknown";
}

/** @param {Judged} judged */
export function verdictText({ verdict, why }) {
  if (verdict === "allow") return "allowed";
  const reason = why ? `: ${why}` : "";
  return verdict === "ask" ? `asks a person${reason}` : `refused${reason}`;
}

export class Judging {
  /** The last judgement, and the text it is about. */
  last = signal(/** @type {{ text: string, judgement: Judgement } | null} */ (null));
  problem = signal("");
  /** The statement where the caret is. */
  statement;
  /** The text of the last judgement is the text as it is. */
  isFresh;
  /** The server has judged only the first statements. */
  isPartial;
  /** What the server said about the text from its beginning, without what `near` added.
   * @type {{ text: string, judgement: Judgement } | null} */
  #first = null;
  #editor;
  #place;
  #asked = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {import("./editor.js").Editor} editor @param {() => Place} place */
  constructor(editor, place) {
    this.#editor = editor;
    this.#place = place;
    this.isFresh = computed(() => this.last.value?.text === editor.text.value);
    this.isPartial = computed(() => (this.last.value ? Boolean(restOf(this.last.value.text, this.#first?.judgement ?? this.last.value.judgement)) : false));
    this.statement = computed(() => {
      const { last } = this;
      if (!last.value || !editor.text.value.trim()) return null;
      return statementAt(last.value.judgement.statements, editor.selection.value.to);
    });
    effect(() => {
      const text = editor.text.value;
      clearTimeout(this.#timer);
      if (this.last.peek()?.text === text) return;
      if (!text.trim()) {
        this.#asked.abort();
        this.last.value = null;
        this.problem.value = "";
        return;
      }
      this.#later(() => this.fresh(), text);
    });
    effect(() => {
      const caret = editor.selection.value.to;
      const { last } = this;
      if (!last.value || !this.isFresh.value || this.#reaches(last.value.judgement, caret)) return;
      clearTimeout(this.#timer);
      this.#later(() => this.#near(), last.value.text);
    });
    onEnd(() => {
      clearTimeout(this.#timer);
      this.#asked.abort();
    });
  }

  /** @param {() => Promise<unknown>} work @param {string} text */
  #later(work, text) {
    const wait = text.length > LONG_TEXT ? WAIT_LONG_MS : WAIT_MS;
    this.#timer = setTimeout(() => void work().catch(() => {}), wait);
  }

  /** The judgement of the text as it is now. @returns {Promise<Judgement>} */
  async fresh() {
    const text = this.#editor.text.peek();
    const last = this.last.peek();
    if (last?.text === text) return last.judgement;
    return this.#ask(async (signal) => {
      const judgement = await this.of(text, signal);
      if (this.#editor.text.peek() === text) {
        this.problem.value = "";
        // First what the readers of `last` read.
        this.#first = { text, judgement };
        this.last.value = this.#first;
        this.#editor.serve(judgement.spans);
      }
      return judgement;
    });
  }

  /** Of a long text the server judges the first statements: here those at the caret are added, as far
   * as the light lexer knows where they begin. They are shown; what runs is found by `upTo`. */
  async #near() {
    const { lines, selection } = this.#editor;
    const { last } = this;
    const shown = last.peek();
    const [from, to] = lines.around(selection.peek().to);
    if (!shown || !shown.text.slice(from, to).trim()) return;
    await this.#ask(async (signal) => {
      const { statements } = await this.of(shown.text.slice(from, to), signal);
      if (last.peek() !== shown) return;
      const first = covered(shown.judgement);
      const moved = shifted(statements, from).filter(({ start }) => start >= first);
      last.value = { text: shown.text, judgement: { ...shown.judgement, statements: [...shown.judgement.statements, ...moved] } };
    });
  }

  /** Whether statements are known as far as a place, or there are no more.
   * @param {Judgement} judgement @param {number} place */
  #reaches(judgement, place) {
    return place <= covered(judgement) || !restOf(this.#editor.text.peek(), judgement);
  }

  /** The statements of a text as far as a place: the server's boundaries from its beginning on.
   * @param {string} text @param {number} place @returns {Promise<Judged[]>} */
  async upTo(text, place) {
    let found = /** @type {Judged[]} */ ([]);
    for (let from = 0; ;) {
      const known = from === 0 && this.#first?.text === text ? this.#first.judgement : null;
      const { statements, error } = known ?? await this.of(text.slice(from));
      found = [...found, ...shifted(statements, from)];
      const end = found.at(-1)?.end ?? text.length;
      if (error || !statements.length || end >= place || !restOf(text, { statements: found })) return found;
      from = end + (/^[\s;]*/.exec(text.slice(end))?.[0].length ?? 0);
    }
  }

  /** @template T @param {(signal: AbortSignal) => Promise<T>} work @returns {Promise<T>} */
  async #ask(work) {
    clearTimeout(this.#timer);
    this.#asked.abort();
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      return await work(signal);
    } catch (error) {
      if (!signal.aborted) {
        this.last.value = null;
        this.problem.value = errorText(error);
      }
      throw error;
    }
  }

  /** The judgement of another text, such as a selection.
   * @param {string} statement @param {AbortSignal} [signal] @returns {Promise<Judgement>} */
  of(statement, signal) {
    return post("data/judge", { ...this.#place(), statement }, signal);
  }
}

/** @param {Pick<Judgement, "statements">} judgement */
const covered = ({ statements }) => statements.at(-1)?.end ?? 0;

/** What follows the last statement and may be more of them.
 * @param {string} text @param {Pick<Judgement, "statements">} judgement */
const restOf = (text, judgement) =>
  (judgement.statements.length ? text.slice(covered(judgement)).replace(/^[\s;]+/, "") : "");

/** @param {Judged[]} statements @param {number} by */
const shifted = (statements, by) =>
  statements.map((each) => ({ ...each, start: each.start + by, end: each.end + by }));

/** The statement that the caret is in or after. @param {Judged[]} statements @param {number} caret */
export function statementAt(statements, caret) {
  let found = statements[0] ?? null;
  for (const each of statements) if (each.start <= caret) found = each;
  return found;
}

/** @param {unknown} error whether a newer question took the place of this one */
export const isSuperseded = (error) => !(error instanceof ApiError) && error instanceof DOMException;
