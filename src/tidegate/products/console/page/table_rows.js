/** The rows of a table as they are asked for: page after page, each beginning where one ended. */

import { post } from "./api.js";
import { PagedRows } from "./paged_rows.js";
import { batch, signal } from "./signals.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** @typedef {import("./data_contract.js").Filter} Filter */
/** @typedef {import("./data_contract.js").RowsPage} RowsPage */
/** @typedef {import("./data_contract.js").SortKey} SortKey */
/** @typedef {{ source: string, database: string | null, schema: string | null, table: string,
 *   filters: readonly Filter[], logic: "and" | "or", sort: readonly SortKey[] }} RowsQuestion */

/** A browser draws nothing below some height, so that is where scrolling ends. */
const MOST_ROWS = 500_000;
/** Pages that are loaded at once on the way to the end. */
const STEPS_TO_END = 100;

export class TableRows {
  columns = signal(/** @type {DataColumn[]} */ ([]));
  warnings = signal(/** @type {string[]} */ ([]));
  /** Rows that have come so far, and whether these are all. */
  known = signal({ count: 0, all: false, limited: false, elapsed: 0 });
  /** Whether the way to the end was left before it. */
  paused = signal(false);
  /** @type {RowsQuestion | null} */
  question = null;
  /** How many columns there will be, as far as is known before rows have come. */
  likely = 40;
  /** Where each page begins. @type {(string | null)[]} */
  #cursors = [null];
  /** @type {WeakMap<DataCell[], string[]>} */
  #keys = new WeakMap();

  constructor() {
    this.rows = new PagedRows({
      load: (offset, limit, signal) => this.#load(offset / limit, limit, signal),
      columns: () => this.columns.peek().length || this.likely,
    });
  }

  /** @param {RowsQuestion} question */
  show(question) {
    batch(() => {
      this.question = question;
      this.#cursors = [null];
      this.warnings.value = [];
      this.paused.value = false;
      this.known.value = { count: 0, all: false, limited: false, elapsed: 0 };
      this.rows.clear();
      this.rows.count.value = 1;
    });
  }

  /** The values of the key of a row, or none. @param {number} index */
  keyOf(index) {
    const row = this.rows.rowAt(index);
    return (row && this.#keys.get(row)) ?? [];
  }

  /** Load page after page up to the last row, or as far as one go takes: each page is found after
   * the one before. How many rows there are then. @param {AbortSignal} ended */
  async toEnd(ended) {
    const { question } = this;
    this.paused.value = false;
    for (let step = 0; step < STEPS_TO_END && !ended.aborted; step += 1) {
      const { count, all, limited } = this.known.peek();
      if (all || limited) return count;
      await this.rows.take(count, count + 1);
      if (question !== this.question) return 0;
      if (this.known.peek().count === count && !this.known.peek().all) break; // an error is shown
    }
    if (this.known.peek().all || this.known.peek().limited) return this.known.peek().count;
    this.paused.value = true;
    return this.known.peek().count;
  }

  /** @param {number} page @param {number} limit @param {AbortSignal} signal */
  async #load(page, limit, signal) {
    const rows = /** @type {DataCell[][]} */ ([]);
    let after = this.#cursors[page] ?? null;
    /** @type {RowsPage} */
    let found;
    do {
      found = await post("data/rows", { ...this.question, after, limit: limit - rows.length }, signal);
      if (signal.aborted) return [];
      found.rows.forEach((row, at) => this.#keys.set(row, found.keys[at] ?? []));
      rows.push(...found.rows);
      after = found.next;
    } while (after && rows.length < limit && found.rows.length);
    batch(() => this.#learn(page, limit, rows.length, after, found));
    return rows;
  }

  /** @param {number} page @param {number} limit @param {number} count @param {string | null} next
   * @param {RowsPage} found */
  #learn(page, limit, count, next, found) {
    const reached = page * limit + count;
    if (JSON.stringify(this.columns.peek()) !== JSON.stringify(found.columns)) this.columns.value = found.columns;
    if (page === 0) this.warnings.value = found.warnings;
    if (next) this.#cursors[page + 1] = next;
    if (next && this.#cursors.length > page + 2) return;
    const limited = next !== null && reached >= MOST_ROWS;
    this.known.value = { count: reached, all: !next, limited, elapsed: found.elapsed_ms };
    this.rows.count.value = next && !limited ? reached + limit : reached;
  }
}
