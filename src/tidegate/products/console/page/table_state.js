/** What a person has chosen on the page of a table: it stays while the tab is open. */

import { data } from "./data_state.js";
import { batch, signal } from "./signals.js";
import { perSession } from "./state.js";

/** @typedef {import("./data_contract.js").Filter} Filter */
/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").SortKey} SortKey */
/** @typedef {import("./data_contract.js").TableEnd} TableEnd */

export class TableState {
  view = signal(/** @type {"rows" | "structure" | "ddl"} */ ("rows"));
  /** The conditions that hold for the rows that are shown. */
  filters = signal(/** @type {readonly Filter[]} */ ([]));
  logic = signal(/** @type {"and" | "or"} */ ("and"));
  sort = signal(/** @type {readonly SortKey[]} */ ([]));
  /** Whether they came with a link: what is not there is then said in one way. */
  linked = signal(false);
  /** Whether the conditions are being written. */
  filtering = signal(false);

  /** Sort by a column; once more turns it, and a third time takes it away.
   * @param {string} column @param {boolean} add whether the other columns stay */
  sortBy(column, add) {
    const old = this.sort.peek().find((key) => key.column === column);
    const rest = add ? this.sort.peek().filter((key) => key.column !== column) : [];
    if (!old) this.sort.value = [...rest, { column, direction: "asc" }];
    else if (old.direction === "asc") this.sort.value = [...rest, { column, direction: "desc" }];
    else this.sort.value = rest;
  }

  /** @param {readonly Filter[]} filters */
  show(filters) {
    batch(() => {
      this.view.value = "rows";
      this.logic.value = "and";
      this.linked.value = false;
      this.filters.value = filters;
      this.filtering.value = filters.length > 0;
    });
  }

  /** Show what a link asks for, and all of it. @param {import("./links.js").TableLink} link */
  follow({ view, filters, logic, sort }) {
    batch(() => {
      this.view.value = view;
      this.filters.value = filters;
      this.logic.value = logic;
      this.sort.value = sort;
      this.linked.value = filters.length + sort.length > 0;
      this.filtering.value = filters.length > 0;
    });
  }
}

const states = perSession(() => /** @type {Map<string, TableState>} */ (new Map()));

/** @param {string} tab */
export function tableState(tab) {
  const state = states().get(tab) ?? new TableState();
  states().set(tab, state);
  return state;
}

/** @param {string} column @param {string} value @returns {Filter} */
export const equals = (column, value) => ({ column, operator: "=", value, second: "" });

/** Open a table with the rows that have certain values.
 * @param {Place} from the place of the table that refers to it @param {TableEnd} to
 * @param {readonly string[]} values in the order of `to.columns` */
export async function openRows(from, to, values) {
  const place = { source: from.source, database: to.database ?? from.database, schema: to.schema ?? from.schema };
  const filters = to.columns.map((column, at) => equals(column, values[at]));
  return data.openTable(place, to.table, { before: ({ id }) => tableState(id).show(filters) });
}
