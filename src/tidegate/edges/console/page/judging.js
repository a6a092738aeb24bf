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
      const wait = text.length > LONG_TEXT ? WAIT_LONG_MS : WAIT_MS;
      this.#timer = setTimeout(() => void this.fresh().catch(() => {}), wait);
    });
    onEnd(() => {
      clearTimeout(this.#timer);
      this.#asked.abort();
    });
  }

  /** The judgement of the text as it is now. @returns {Promise<Judgement>} */
  async fresh() {
    const text = this.#editor.text.peek();
    const last = this.last.peek();
    if (last?.text === text) return last.judgement;
    clearTimeout(this.#timer);
    this.#asked.abort();
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const judgement = await this.of(text, signal);
      if (this.#editor.text.peek() === text && !signal.aborted) {
        this.problem.value = "";
        this.last.value = { text, judgement };
        this.#editor.serve(judgement.spans);
      }
      return judgement;
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

/** The statement that the caret is in or behind. @param {Judged[]} statements @param {number} caret */
export function statementAt(statements, caret) {
  let found = statements[0] ?? null;
  for (const each of statements) if (each.start <= caret) found = each;
  return found;
}

/** @param {unknown} error whether a newer question took the place of this one */
export const isSuperseded = (error) => !(error instanceof ApiError) && error instanceof DOMException;
