/** What a terminal does with a line, and the transcript of that. Rows are read once and not kept
 * anywhere else. The transcript and an open transaction stay while other pages of the console are in
 * front, as the Inbox is for an answer; they end with the tab, the session, or the loaded page. */

import { ApiError, errorText, get, post, query } from "./api.js";
import { data } from "./data_state.js";
import { batch, effect, onEnd, root, signal } from "./signals.js";
import { listen, session } from "./state.js";
import { expandedText, tableText } from "./terminal_table.js";
import { read } from "./terminal_words.js";
import { counted, number } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./query_contract.js").DataRun} DataRun */
/** @typedef {"asked" | "out" | "note" | "bad" | "waits"} EntryKind */
/** @typedef {{ key: number, kind: EntryKind, prompt: string, text: string }} Entry */
/** @typedef {{ id: string, readsOnly: boolean, failed: boolean, idle: number, until: number }} Block */

const [MOST_ENTRIES, MOST_ROWS, MOST_HISTORY] = [300, 500, 200];
const OPEN = new Set(["running", "asking"]);
const POLL_MS = 1_500;
const HELP = `A statement ends with a semicolon; Enter sends it, Shift Enter begins another line.
  \\d            tables of the schema          \\d TABLE    its columns, keys and indexes
  \\dt PATTERN   tables whose name has it      \\x          a line for each value, or not
  \\timing       how long each took, or not    \\clear      an empty screen (Ctrl L)
  BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, ROLLBACK TO: one transaction over several statements
Arrow up and down go through what you sent, Ctrl C cancels what runs. There is no shell.`;

export class TerminalState {
  entries = signal(/** @type {Entry[]} */ ([]));
  block = signal(/** @type {Block | null} */ (null));
  running = signal("");
  /** What waits for a person's yes. */
  asking = signal("");
  expanded = signal(false);
  timing = signal(false);
  left = signal(0);
  /** @type {string[]} the newest last */
  history = [];
  /** What is written and not sent. */
  draft = "";
  #tab;
  #key = 0;
  #ended = new AbortController();

  /** @param {DataTab} tab */
  constructor(tab) {
    this.#tab = tab;
    const timer = setInterval(() => this.#count(), 1_000);
    onEnd(() => {
      clearInterval(timer);
      this.#ended.abort();
      const block = this.block.peek();
      if (block) void this.#step(block, "rollback").catch(() => {});
    });
    void this.#recall();
    this.#print("note", `${tab.source}: every line passes the gate, as in a query tab. \\? lists what else there is.`);
  }

  get place() {
    const { source, database, schema } = this.#tab;
    return { source, database, schema };
  }

  get speaksSql() {
    return data.sources.peek().find(({ name }) => name === this.#tab.source)?.language === "sql";
  }

  get prompt() {
    const block = this.block.value;
    return `${this.#tab.source}${block ? (block.failed ? "!" : "*") : "="}>`;
  }

  async #recall() {
    try {
      const { entries } = await get(`data/history?${query({ source: this.#tab.source, limit: MOST_HISTORY })}`, this.#ended.signal);
      this.history.unshift(...entries.map((/** @type {{ statement: string }} */ { statement }) => statement).reverse());
    } catch {
      // without it the arrows go through what is sent from now on
    }
  }

  /** @param {EntryKind} kind @param {string} text @param {string} [prompt] */
  #print(kind, text, prompt = "") {
    this.#key += 1;
    this.entries.value = [...this.entries.peek(), { key: this.#key, kind, prompt, text }].slice(-MOST_ENTRIES);
  }

  clear() {
    this.entries.value = [];
  }

  /** The seconds that the block may still be idle. */
  #count() {
    const block = this.block.peek();
    if (!block) return;
    const left = this.running.peek() ? block.idle : Math.max(0, Math.ceil((block.until - Date.now()) / 1_000));
    this.left.value = left;
    if (left > 0) return;
    this.block.value = null;
    this.#print("bad", `The transaction was idle for ${block.idle} s, and has been rolled back.`);
  }

  #used() {
    const block = this.block.peek();
    if (block) this.block.value = { ...block, until: Date.now() + block.idle * 1_000 };
  }

  /** @param {string} text */
  async send(text) {
    const line = text.trim();
    if (!line || this.running.peek()) return;
    this.#print("asked", line, this.prompt);
    if (this.history.at(-1) !== line) this.history.push(line);
    const asked = read(line, this.speaksSql);
    const began = performance.now();
    this.running.value = " ";
    try {
      if (asked.kind === "meta") await this.#meta(asked.word, asked.rest);
      else if (asked.kind === "begin") await this.#begin(asked.readsOnly);
      else if (asked.kind === "end") await this.#end(asked.action);
      else if (asked.kind === "mark") await this.#mark(asked.action, asked.name);
      else await this.#statements(asked.text);
    } catch (error) {
      this.#print("bad", errorText(error));
      this.#lose(error);
    } finally {
      batch(() => {
        this.running.value = "";
        this.asking.value = "";
      });
      this.#used();
    }
    if (this.timing.peek() && asked.kind !== "meta") this.#print("note", `Time: ${number(Math.round(performance.now() - began))} ms`);
  }

  /** A block that the gate has ended is no block any more. @param {unknown} error */
  #lose(error) {
    const block = this.block.peek();
    if (block && error instanceof ApiError && /transaction|25P01/i.test(error.message) && !/has failed/i.test(error.message)) this.block.value = null;
  }

  // Statements

  /** Each of the statements of a line, until one fails. @param {string} text */
  async #statements(text) {
    for (const statement of await this.#parts(text)) {
      if (!(await this.#run(statement))) return;
    }
  }

  /** @param {string} text @returns {Promise<string[]>} */
  async #parts(text) {
    if (!this.speaksSql) return [text];
    const { statements } = await post("data/judge", { ...this.place, statement: text }, this.#ended.signal);
    const parts = statements.map((/** @type {{ start: number, end: number }} */ { start, end }) => text.slice(start, end).trim());
    return parts.filter(Boolean).length ? parts.filter(Boolean) : [text];
  }

  /** @param {string} statement @returns {Promise<boolean>} whether it was done */
  async #run(statement) {
    const block = this.block.peek();
    const body = { ...this.place, statement, tab: `terminal ${this.#tab.id}`, max_rows: MOST_ROWS, ...(block ? { transaction: block.id } : {}) };
    let run = /** @type {DataRun} */ (await post("data/runs", body, this.#ended.signal));
    this.running.value = run.id;
    run = await this.#over(run);
    const path = `data/runs/${encodeURIComponent(run.id)}`;
    try {
      if (run.state !== "done") {
        this.#print("bad", [run.code, run.message, run.hint].filter(Boolean).join("\n"));
        if (block && /transaction is over/i.test(run.message)) this.block.value = null;
        else if (block && run.state === "failed") this.block.value = { ...block, failed: true };
        return false;
      }
      await this.#show(run, path);
      return true;
    } finally {
      void post(`${path}/close`, {}).catch(() => {});
    }
  }

  /** Wait for the end of a run: events come at once, and it is asked about as well. @param {DataRun} run @returns {Promise<DataRun>} */
  #over(run) {
    return new Promise((done, failed) => {
      let shown = "";
      const stop = () => {
        forget();
        clearInterval(timer);
      };
      const take = (/** @type {DataRun} */ next) => {
        if (next.id !== run.id) return;
        if (next.state === "asking" && next.approval && next.approval !== shown) {
          shown = next.approval;
          this.asking.value = shown;
          this.#print("waits", "It waits for a person's yes: the question is in the Inbox.");
        }
        if (OPEN.has(next.state)) return;
        stop();
        done(next);
      };
      const forget = listen("run", take);
      const timer = setInterval(() => get(`data/runs/${encodeURIComponent(run.id)}`).then(take, (error) => {
        stop();
        failed(error);
      }), POLL_MS);
      this.#ended.signal.addEventListener("abort", stop, { once: true });
      take(run);
    });
  }

  /** @param {DataRun} run @param {string} path */
  async #show(run, path) {
    if (run.columns.length) {
      const { rows } = await get(`${path}/rows?${query({ offset: 0, limit: MOST_ROWS })}`, this.#ended.signal);
      const heads = run.columns.map(({ name, kind }) => ({ name, kind }));
      if (rows.length) this.#print("out", this.expanded.peek() ? expandedText(heads, rows) : tableText(heads, rows));
      this.#print("note", `(${counted(run.row_count, "row")}${run.truncated ? ", cut: a query tab shows more" : ""})`);
    } else this.#print("note", run.affected === null ? "Done." : `Done: ${counted(run.affected, "row")}.`);
    for (const warning of run.warnings) this.#print("note", warning);
  }

  async cancel() {
    const id = this.running.peek().trim();
    if (id) await post(`data/runs/${encodeURIComponent(id)}/cancel`, {}).catch((error) => this.#print("bad", errorText(error)));
  }

  // Transactions

  /** @param {boolean} readsOnly */
  async #begin(readsOnly) {
    if (this.block.peek()) {
      this.#print("bad", "A transaction is open already.");
      return;
    }
    const begun = await post("data/blocks", { source: this.#tab.source, database: this.#tab.database, schema: this.#tab.schema, reads_only: readsOnly });
    this.block.value = { id: begun.id, readsOnly: begun.reads_only, failed: false, idle: begun.idle_s, until: Date.now() + begun.idle_s * 1_000 };
    this.left.value = begun.idle_s;
    this.#print("note", `BEGIN${begun.reads_only ? " READ ONLY" : ""}: it is rolled back once nothing has run in it for ${begun.idle_s} s.`);
  }

  /** @param {Block} block @param {string} action @param {string} [name] */
  #step(block, action, name = "") {
    const { source, database, schema } = this.place;
    return post(`data/blocks/${encodeURIComponent(block.id)}`, { source, database, schema, action, name });
  }

  /** @param {"commit" | "rollback"} action */
  async #end(action) {
    const block = this.block.peek();
    if (!block) {
      this.#print("bad", "No transaction is open.");
      return;
    }
    this.block.value = null;
    const ended = await this.#step(block, action);
    if (ended.committed) this.#print("note", `COMMIT: ${counted(ended.rows, "row")} changed.`);
    else this.#print(action === "commit" ? "bad" : "note", action === "commit" ? "ROLLBACK: a statement of the transaction had failed." : "ROLLBACK");
  }

  /** @param {"savepoint" | "release" | "rollback to"} action @param {string} name */
  async #mark(action, name) {
    const block = this.block.peek();
    if (!block) {
      this.#print("bad", "No transaction is open.");
      return;
    }
    await this.#step(block, action, name);
    if (action === "rollback to") this.block.value = { ...block, failed: false };
    this.#print("note", `${action.toUpperCase()} ${name}`);
  }

  // Words that begin with a backslash

  /** @param {string} word @param {string} rest */
  async #meta(word, rest) {
    const name = rest.replace(/^"(.*)"$/, "$1");
    if (word === "?" || word === "h" || word === "help") this.#print("out", HELP);
    else if (word === "x") this.#toggle(this.expanded, rest, "A line for each value");
    else if (word === "timing") this.#toggle(this.timing, rest, "Timing");
    else if (word === "clear") this.clear();
    else if (word === "q") await data.close(this.#tab.id);
    else if (word === "dt" || (word === "d" && !rest)) await this.#tables(name);
    else if (word === "d" || word === "d+") await this.#describe(name);
    else if (word === "!") this.#print("bad", "There is no shell here.");
    else this.#print("bad", `\\${word} is not known. \\? lists what is.`);
  }

  /** @param {import("./signals.js").Signal<boolean>} choice @param {string} rest @param {string} label */
  #toggle(choice, rest, label) {
    choice.value = rest ? /^(on|true|1)$/i.test(rest) : !choice.peek();
    this.#print("note", `${label}: ${choice.peek() ? "on" : "off"}.`);
  }

  /** @param {string} pattern */
  async #tables(pattern) {
    const words = pattern.replace(/[*%]/g, " ").trim();
    const found = await get(`data/tables?${query({ ...this.place, q: words, limit: MOST_ROWS })}`, this.#ended.signal);
    const rows = found.tables.map((/** @type {import("./data_contract.js").TableInfo} */ { schema, name, kind, rows: about }) =>
      [schema ?? "", name, kind, about === null ? "" : String(about)]);
    const heads = [{ name: "Schema", kind: "text" }, { name: "Name", kind: "text" }, { name: "Kind", kind: "text" }, { name: "Rows, about", kind: "number" }];
    if (rows.length) this.#print("out", tableText(heads, rows));
    this.#print("note", `(${counted(found.total ?? rows.length, "table")}${found.next ? `, the first ${MOST_ROWS} shown` : ""})`);
  }

  /** @param {string} name */
  async #describe(name) {
    const [schema, table] = name.includes(".") ? [name.slice(0, name.indexOf(".")), name.slice(name.indexOf(".") + 1)] : [this.place.schema, name];
    const facts = /** @type {import("./data_contract.js").TableFacts} */ (
      await get(`data/table?${query({ ...this.place, schema, table })}`, this.#ended.signal));
    const heads = ["Column", "Type", "Key", "NULL", "Default"].map((each) => ({ name: each, kind: "text" }));
    this.#print("out", [
      tableText(heads, facts.columns.map((column) => [column.name, column.masked ? `${column.type}, masked` : column.type,
        column.key ? String(column.key) : "", column.nullable ? "" : "not null", column.default ?? ""])),
      ...facts.indexes.map((index) => `index ${index.name} (${index.columns.join(", ")})${index.primary ? " primary" : index.unique ? " unique" : ""}`),
      ...facts.foreign_keys.map((key) => `key ${key.name}: (${key.columns.join(", ")}) refers to ${key.to.table} (${key.to.columns.join(", ")})`),
      ...facts.referenced_by.map((key) => `key ${key.name}: ${key.from.table} (${key.from.columns.join(", ")}) refers to it`),
    ].join("\n"));
  }
}

/** @type {Map<string, { state: TerminalState, end: () => void }>} */
const kept = new Map();

/** The terminal of a tab. @param {DataTab} tab */
export function terminalOf(tab) {
  const found = kept.get(tab.id);
  if (found) return found.state;
  const [state, end] = root(() => new TerminalState(tab));
  kept.set(tab.id, { state, end });
  return state;
}

/** @param {string} id of a tab */
function forget(id) {
  kept.get(id)?.end();
  kept.delete(id);
}
listen("tab", ({ tab, action }) => action === "closed" && forget(tab.id));
effect(() => {
  if (session.value === null) [...kept.keys()].forEach(forget);
});
