/** The columns of a grid: how wide each is, where it begins, which are in sight. */

import { cellText } from "./data_cells.js";

/** @typedef {import("./data_contract.js").DataColumn} DataColumn */
/** @typedef {import("./data_contract.js").DataCell} DataCell */

const NARROWEST = 48;
const WIDEST_AT_FIRST = 320;
const WIDEST = 1_600;
const CHARACTER = 7.6;
const PADDING = 22;
const SIGNS = 26;

/** @param {number} width */
const bounded = (width) => Math.round(Math.min(WIDEST, Math.max(NARROWEST, width)));

export class GridColumns {
  /** @type {DataColumn[]} */
  all = [];
  /** Where each column begins; one more for the end of the last. */
  starts = [0];
  /** Grows whenever a width has changed. */
  version = 0;
  /** @type {number[]} */
  #widths = [];

  /** @param {DataColumn[]} columns @param {(DataCell[] | undefined)[]} rows some, to fit them */
  set(columns, rows) {
    this.all = columns;
    this.#widths = columns.map((_, place) => Math.min(WIDEST_AT_FIRST, this.#fitting(place, rows)));
    this.#place();
  }

  /** @param {number} place */
  width(place) {
    return this.#widths[place];
  }

  get total() {
    return this.starts[this.all.length];
  }

  /** @param {number} place @param {number} width */
  resize(place, width) {
    this.#widths[place] = bounded(width);
    this.#place();
  }

  /** Make a column as wide as what is in it. @param {number} place @param {(DataCell[] | undefined)[]} rows */
  fit(place, rows) {
    this.resize(place, this.#fitting(place, rows));
  }

  /** The column at a distance from the left. @param {number} left */
  at(left) {
    let [low, high] = [0, this.all.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= left) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #place() {
    this.starts = [0];
    for (const width of this.#widths) this.starts.push(/** @type {number} */ (this.starts.at(-1)) + width);
    this.version += 1;
  }

  /** @param {number} place @param {(DataCell[] | undefined)[]} rows */
  #fitting(place, rows) {
    const { name, type, masked } = this.all[place];
    const longest = rows.reduce((most, row) =>
      Math.max(most, row ? (cellText(row[place]) ?? "NULL").slice(0, 240).length : 0), 0);
    const head = Math.max(name.length * CHARACTER + SIGNS, type.length * 6.4 + (masked ? 62 : 0));
    return bounded(PADDING + Math.max(head, longest * CHARACTER));
  }
}
