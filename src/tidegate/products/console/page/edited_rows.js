/**
 * The rows of a grid with the edits of a tab over them: new rows first, then those that are there, each
 * as it will be, or as it was stored. Without edits it gives the rows as they are.
 */

import { computed, effect, signal } from "./signals.js";

/** @typedef {import("./data_contract.js").DataCell} DataCell */
/** @typedef {import("./paged_rows.js").PagedRows} PagedRows */
/** @typedef {import("./staged_edits.js").StagedEdits} StagedEdits */
/** @typedef {import("./staged_edits.js").Target} Target */
/** What shows edits over rows; it is loaded when it is first needed.
 * @typedef {{ current: (edits: StagedEdits, key: string[], row: DataCell[]) => { key: string[], row: DataCell[] },
 *   overlay: (edits: StagedEdits, key: string[], row: DataCell[]) => DataCell[],
 *   fresh: (edits: StagedEdits) => { id: string, key?: string[] | null, row: DataCell[], stored: boolean }[],
 *   stateOf: (edits: StagedEdits, key: string[]) => string,
 *   isChanged: (edits: StagedEdits, target: Target, column: number) => boolean }} Overlay */

/** Edits that did not reach the server yet, by tab and by row, null for one that is dropped: they are sent again,
 * also by the next session. @type {Map<string, Map<string, import("./staged_edits.js").Row | null>>} */
export const unsent = new Map();

export class EditedRows {
  edits = signal(/** @type {StagedEdits | null} */ (null));
  changed = signal(0);
  count;
  base;
  #keyOf;
  /** @type {Overlay | null} */
  #overlay = null;
  #fresh;
  /** @type {WeakMap<DataCell[], { version: number, row: DataCell[] }>} */
  #merged = new WeakMap();
  #version = 0;

  /** @param {PagedRows} base @param {(index: number) => string[]} keyOf a row's key, empty if it has none */
  constructor(base, keyOf) {
    this.base = base;
    this.#keyOf = keyOf;
    this.#fresh = computed(() => {
      const edits = this.edits.value;
      return edits && this.#overlay ? this.#overlay.fresh(edits) : [];
    });
    this.count = computed(() => base.count.value + this.#fresh.value.length);
    effect(() => {
      const edits = this.edits.value;
      void [base.changed.value, edits?.rows.value, edits?.stored.value, edits?.added.value];
      this.#version += 1;
      this.changed.value = this.changed.peek() + 1;
    });
  }

  /** @param {StagedEdits | null} edits @param {Overlay | null} overlay */
  use(edits, overlay) {
    this.#overlay = overlay;
    this.edits.value = edits;
  }

  /** How many new rows there are above the others. */
  get above() {
    return this.#fresh.peek().length;
  }

  /** @param {number} index @returns {DataCell[] | undefined} */
  rowAt(index) {
    if (index < this.above) return this.#fresh.peek()[index].row;
    const row = this.base.rowAt(index - this.above);
    const edits = this.edits.peek();
    if (!row || !edits || !this.#overlay) return row;
    const known = this.#merged.get(row);
    if (known?.version === this.#version) return known.row;
    const key = this.#keyOf(index - this.above);
    const next = key.length ? this.#overlay.overlay(edits, key, row) : row;
    // The same node stays where nothing differs.
    const same = known && JSON.stringify(known.row) === JSON.stringify(next) ? known.row : next;
    this.#merged.set(row, { version: this.#version, row: same });
    return same;
  }

  /** What a row of the grid is for edits; null if it cannot be named. @param {number} index @returns {Target | null} */
  target(index) {
    if (index < this.above) {
      const { id, key, row, stored } = this.#fresh.peek()[index];
      return !stored ? { id } : key ? { key, seen: row } : null;
    }
    const row = this.base.rowAt(index - this.above);
    const key = row ? this.#keyOf(index - this.above) : [];
    if (!row || !key.length) return null;
    const edits = this.edits.peek();
    // A row that was written since is edited as it is stored now.
    const now = edits && this.#overlay ? this.#overlay.current(edits, key, row) : { key, row };
    return { key: now.key, seen: now.row };
  }

  /** "insert", "update", "delete", "stored", "gone" or "". @param {number} index */
  stateOf(index) {
    const edits = this.edits.peek();
    if (!edits || !this.#overlay) return "";
    if (index < this.above) {
      const { key, stored } = this.#fresh.peek()[index];
      return !stored ? "insert" : (key && this.#overlay.stateOf(edits, key)) || "stored";
    }
    const key = this.base.rowAt(index - this.above) ? this.#keyOf(index - this.above) : [];
    return key.length ? this.#overlay.stateOf(edits, key) : "";
  }

  /** @param {number} index @param {number} column */
  isChanged(index, column) {
    const edits = this.edits.peek();
    const target = edits && this.#overlay ? this.target(index) : null;
    return Boolean(target && edits && this.#overlay?.isChanged(edits, target, column));
  }

  /** The number of a row before its cells: new ones have none. @param {number} index */
  numberOf(index) {
    return index < this.above ? null : index - this.above + 1;
  }

  /** @param {number} first @param {number} last */
  want(first, last) {
    this.base.want(Math.max(0, first - this.above), last - this.above);
  }

  /** @param {number} first @param {number} last @returns {Promise<DataCell[][]>} */
  async take(first, last) {
    const { above } = this;
    await this.base.take(Math.max(0, first - above), last - above);
    const rows = /** @type {DataCell[][]} */ ([]);
    for (let index = first; index < Math.min(last, this.count.peek()); index += 1) {
      const row = this.rowAt(index);
      if (!row) break;
      rows.push(row);
    }
    return rows;
  }
}
