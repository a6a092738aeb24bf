/** The names below each source: schemas and tables, read when they are first opened; and a search. */

import { errorText, get, query } from "./api.js";
import { data } from "./data_state.js";
import { signal } from "./signals.js";

/** @typedef {import("./data_contract.js").DataSource} DataSource */
/** @typedef {import("./data_contract.js").Found} Found */
/** @typedef {import("./data_contract.js").Match} Match */
/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").SchemaInfo} SchemaInfo */
/** @typedef {import("./data_contract.js").TableInfo} TableInfo */
/** @typedef {import("./data_contract.js").TablesPage} TablesPage */
/**
 * @typedef {{ key: string, level: number, parent: string, at: number, of: number, lines: number } & (
 *   { kind: "source", source: DataSource, open: boolean } |
 *   { kind: "group", name: string } |
 *   { kind: "schema", place: Place, name: string, tables: number | null, open: boolean } |
 *   { kind: "table", place: Place, table: string, is: string, rows: number | null, comment: string } |
 *   { kind: "match", place: Place, table: string, is: string, column: string | null, type: string | null } |
 *   { kind: "note", text: string, bad: boolean } |
 *   { kind: "more", place: Place })} TreeRow
 */
/** @typedef {{ tables: TableInfo[], next: string | null, total: number | null, error: string, loading: boolean }} Held */

const PAGE = 200;
const MOST_MATCHES = 100;
const MOST_LINES = 8;

/** @param {Place} place */
const placeKey = (place) => JSON.stringify([place.source, place.database, place.schema]);

export class Names {
  open = signal(/** @type {ReadonlySet<string>} */ (new Set()));
  /** What a search has found, or null while none is on. */
  found = signal(/** @type {Found | null} */ (null));
  searchError = signal("");
  searching = signal(false);
  #changed = signal(0);
  /** @type {Map<string, { schemas: SchemaInfo[], error: string, loading: boolean }>} */
  #schemas = new Map();
  /** @type {Map<string, Held>} */
  #tables = new Map();
  #pending = new AbortController();

  /** @param {string} key @param {boolean} open */
  setOpen(key, open) {
    const next = new Set(this.open.peek());
    if (open) next.add(key);
    else next.delete(key);
    this.open.value = next;
  }

  /** Read all names again. */
  refresh() {
    this.#schemas.clear();
    this.#tables.clear();
    this.#changed.value = this.#changed.peek() + 1;
  }

  /** @param {string} source */
  async #readSchemas(source) {
    const held = { schemas: /** @type {SchemaInfo[]} */ ([]), error: "", loading: true };
    this.#schemas.set(source, held);
    try {
      held.schemas = (await get(`data/schemas?${query({ source })}`)).schemas;
      const current = held.schemas.find((each) => each.current) ?? held.schemas[0];
      if (current && held.schemas.length > 1) {
        this.setOpen(placeKey({ source, database: current.database, schema: current.name }), true);
      }
    } catch (error) {
      held.error = errorText(error);
    }
    held.loading = false;
    this.#changed.value = this.#changed.peek() + 1;
  }

  /** The next tables of a place. @param {Place} place */
  async more(place) {
    const key = placeKey(place);
    const held = this.#tables.get(key) ??
      { tables: [], next: null, total: null, error: "", loading: false };
    if (held.loading) return;
    this.#tables.set(key, { ...held, loading: true });
    try {
      /** @type {TablesPage} */
      const page = await get(`data/tables?${query({ ...place, limit: PAGE, after: held.next })}`);
      this.#tables.set(key, { tables: [...held.tables, ...page.tables], next: page.next,
        total: page.total ?? held.total, error: "", loading: false });
    } catch (error) {
      this.#tables.set(key, { ...held, error: errorText(error), loading: false });
    }
    this.#changed.value = this.#changed.peek() + 1;
  }

  /** Search all sources, or end the search. @param {string} text */
  async search(text) {
    this.#pending.abort();
    const { signal: ended } = (this.#pending = new AbortController());
    this.searchError.value = "";
    if (!text) {
      this.found.value = null;
      this.searching.value = false;
      return;
    }
    this.searching.value = true;
    try {
      this.found.value = await get(`data/search?${query({ q: text, limit: MOST_MATCHES })}`, ended);
    } catch (error) {
      if (ended.aborted) return;
      this.searchError.value = errorText(error);
    }
    this.searching.value = false;
  }

  /** All rows that the tree shows now. @returns {TreeRow[]} */
  get rows() {
    void this.#changed.value;
    const rows = /** @type {TreeRow[]} */ ([]);
    const sources = inGroups(data.sources.value);
    let last = "";
    sources.forEach((source, at) => {
      const key = `source ${source.name}`;
      const name = source.group ?? "";
      if (name !== last) rows.push({ kind: "group", key: `group ${name}`, level: 1, lines: 1, parent: "", at: 0, of: 0, name });
      last = name;
      const open = this.open.value.has(key);
      rows.push({ kind: "source", key, level: 1, lines: 1, parent: "", at: at + 1, of: sources.length, source, open });
      if (open) this.#addSchemas(rows, source, key);
    });
    return rows;
  }

  /** @param {TreeRow[]} rows @param {DataSource} source @param {string} parent */
  #addSchemas(rows, source, parent) {
    if (!source.may.read) {
      rows.push(note(parent, 2, source.may.why_not || "You may not read this source.", true));
      return;
    }
    const held = this.#schemas.get(source.name);
    if (!held) {
      void this.#readSchemas(source.name);
      rows.push(note(parent, 2, "Loading …"));
    } else if (held.loading) rows.push(note(parent, 2, "Loading …"));
    else if (held.error) rows.push(note(parent, 2, held.error, true));
    else if (!held.schemas.length) rows.push(note(parent, 2, "There is no table."));
    else if (held.schemas.length === 1) {
      const [{ database, name }] = held.schemas;
      this.#addTables(rows, { source: source.name, database, schema: name }, parent, 2);
    } else {
      held.schemas.forEach(({ database, name, tables }, at) => {
        const place = { source: source.name, database, schema: name };
        const key = placeKey(place);
        const open = this.open.value.has(key);
        rows.push({ kind: "schema", key, level: 2, lines: 1, parent, at: at + 1, of: held.schemas.length, place,
          name: name || database || "", tables, open });
        if (open) this.#addTables(rows, place, key, 3);
      });
    }
  }

  /** @param {TreeRow[]} rows @param {Place} place @param {string} parent @param {number} level */
  #addTables(rows, place, parent, level) {
    const held = this.#tables.get(placeKey(place));
    if (!held) {
      void this.more(place);
      rows.push(note(parent, level, "Loading …"));
      return;
    }
    const of = held.total ?? (held.next ? -1 : held.tables.length);
    held.tables.forEach(({ name, kind, rows: count, comment, schema, database }, at) => rows.push({
      kind: "table", key: `${parent} ${name}`, level, lines: 1, parent, at: at + 1, of, is: kind, rows: count, comment,
      place: { source: place.source, database: database ?? place.database, schema: schema ?? place.schema },
      table: name,
    }));
    if (held.error) rows.push(note(parent, level, held.error, true));
    else if (held.next) {
      rows.push({ kind: "more", key: `${parent} more`, level, lines: 1, parent, at: held.tables.length + 1, of, place });
    } else if (!held.tables.length) {
      rows.push(note(parent, level, held.loading ? "Loading …" : "There is no table."));
    }
  }

  /** What was found, as rows. @returns {TreeRow[]} */
  get matches() {
    const { matches = [], more = false, unread = [] } = this.found.value ?? {};
    const rows = /** @type {TreeRow[]} */ (matches.map((match, at) => ({
      kind: "match", level: 1, lines: 1, parent: "", at: at + 1, of: matches.length, is: match.kind,
      key: `match ${JSON.stringify([match.source, match.database, match.schema, match.table, match.column])}`,
      place: { source: match.source, database: match.database, schema: match.schema },
      table: match.table, column: match.column, type: match.type,
    })));
    if (!matches.length && this.found.value) rows.push(note("found", 1, "No table or column has such a name."));
    if (more) rows.push(note("found more", 1, "There are more: type more of the name."));
    for (const { source, reason } of unread) rows.push(note(`unread ${source}`, 1, `${source} was not searched: ${reason}`, true));
    return rows;
  }
}

/** Those of a group together, the groups by name; those without one come last.
 * @param {readonly DataSource[]} sources */
const inGroups = (sources) => [...sources].sort(({ group: one = "" }, { group: other = "" }) =>
  (one && other ? one.localeCompare(other) : Number(!one) - Number(!other)));

/** @param {string} parent @param {number} level @param {string} text @returns {TreeRow} */
const note = (parent, level, text, bad = false) =>
  ({ kind: "note", key: `${parent} note`, level, parent, at: 1, of: 1, text, bad,
    lines: Math.min(MOST_LINES, Math.ceil(text.length / (34 - 4 * level))) });
