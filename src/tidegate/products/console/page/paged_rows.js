/**
 * Rows that are loaded by pages when they come into sight, and forgotten again when there are too
 * many: what is in memory has a bound, however many rows there are.
 */

import { batch, signal } from "./signals.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {(offset: number, limit: number, signal: AbortSignal) => Promise<DataCell[][]>} LoadRows */

const PAGE_CELLS = 16_000;
const MOST_CELLS = 200_000;
const LONGEST_PAGE = 1_000;
const SHORTEST_PAGE = 50;
const PARALLEL = 2;

export class PagedRows {
  /** How many rows there are, as far as is known. */
  count = signal(0);
  /** Grows whenever rows have come. */
  changed = signal(0);
  /** Why the last page did not come, or "". */
  error = signal(/** @type {unknown} */ (null));
  loading = signal(false);
  /** @type {Map<number, { rows: DataCell[][], known: number }>} by the number of the page, the last
   * used at the end; `known` is the count that held when it was asked for */
  #pages = new Map();
  /** @type {Map<number, Promise<void>>} */
  #asked = new Map();
  #wanted = /** @type {[number, number]} */ ([0, 0]);
  #ended = new AbortController();
  #size = 0;
  #load;
  #columns;

  /** @param {{ load: LoadRows, columns: () => number }} options */
  constructor({ load, columns }) {
    this.#load = load;
    this.#columns = columns;
  }

  /** Rows of one page: the same until `clear`. */
  get size() {
    this.#size ||= Math.min(LONGEST_PAGE,
      Math.max(SHORTEST_PAGE, Math.floor(PAGE_CELLS / Math.max(1, this.#columns()))));
    return this.#size;
  }

  /** @param {number} index @returns {DataCell[] | undefined} */
  rowAt(index) {
    return this.#pages.get(Math.floor(index / this.size))?.rows[index % this.size];
  }

  /** What is in sight: its pages are loaded, those that are no longer wanted are not.
   * @param {number} first @param {number} last the row after the last */
  want(first, last) {
    this.#wanted = [first, Math.min(last, this.count.peek())];
    this.#next();
  }

  /** A page that is known already.
   * @param {number} page @param {DataCell[][]} rows @param {number} [known] the count it belongs to */
  put(page, rows, known = this.count.peek()) {
    this.#pages.delete(page);
    this.#pages.set(page, { rows, known });
    this.#forget();
    this.changed.value = this.changed.peek() + 1;
  }

  /** All rows of a range, loaded if they must be.
   * @param {number} first @param {number} last @returns {Promise<DataCell[][]>} */
  async take(first, last) {
    const rows = /** @type {DataCell[][]} */ ([]);
    for (let index = first; index < Math.min(last, this.count.peek()); index += 1) {
      if (!this.rowAt(index)) await this.#ask(Math.floor(index / this.size));
      const row = this.rowAt(index);
      if (!row) break;
      rows.push(row);
    }
    return rows;
  }

  /** Forget all rows: they are others now. */
  clear() {
    this.#ended.abort();
    this.#ended = new AbortController();
    this.#pages.clear();
    this.#asked.clear();
    this.#size = 0;
    batch(() => {
      this.count.value = 0;
      this.error.value = null;
      this.loading.value = false;
      this.changed.value = this.changed.peek() + 1;
    });
  }

  /** Ask again for what is in sight after an error. */
  retry() {
    this.error.value = null;
    this.#next();
  }

  #next() {
    const [first, last] = this.#wanted;
    if (last <= first || this.error.peek()) return;
    const pages = [];
    for (let page = Math.floor(first / this.size); page * this.size < last; page += 1) {
      const found = this.#pages.get(page);
      // The last page grows with the count; one that came too short is not asked for again.
      if (found && (found.rows.length >= this.size || found.known >= this.count.peek())) {
        this.#pages.delete(page);
        this.#pages.set(page, found);
      } else if (!this.#asked.has(page)) pages.push(page);
    }
    for (const page of pages.slice(0, PARALLEL - this.#asked.size)) void this.#ask(page);
  }

  /** @param {number} page */
  #ask(page) {
    const asked = this.#asked.get(page);
    if (asked) return asked;
    const { signal } = this.#ended;
    const known = this.count.peek();
    const done = this.#load(page * this.size, this.size, signal).then(
      (rows) => {
        if (signal.aborted) return;
        this.#asked.delete(page);
        this.loading.value = this.#asked.size > 0;
        this.put(page, rows, Math.max(known, page * this.size + rows.length));
        this.#next();
      },
      (error) => {
        if (signal.aborted) return;
        this.#asked.delete(page);
        batch(() => {
          this.loading.value = this.#asked.size > 0;
          this.error.value = error;
        });
      });
    this.#asked.set(page, done);
    this.loading.value = true;
    return done;
  }

  /** Drop the pages that were used longest ago, never those in sight. */
  #forget() {
    const most = Math.max(4, Math.ceil(MOST_CELLS / (this.size * Math.max(1, this.#columns()))));
    const [first, last] = this.#wanted;
    for (const page of this.#pages.keys()) {
      if (this.#pages.size <= most) return;
      if ((page + 1) * this.size <= first || page * this.size >= last) this.#pages.delete(page);
    }
  }
}
