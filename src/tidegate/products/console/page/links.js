/**
 * Addresses that people send each other: a table with what is shown of it, or a saved query. They
 * are in the fragment, which no server gets, and hold no data, no secret and no statement. Pure.
 */

import { query } from "./api.js";

/** @typedef {import("./data_contract.js").Filter} Filter */
/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").SortKey} SortKey */
/** @typedef {"rows" | "structure" | "ddl"} View */
/** @typedef {{ place: Place, table: string, view: View, filters: Filter[], logic: "and" | "or", sort: SortKey[] }} TableLink */
/** @typedef {{ table: TableLink } | { query: string } | { broken: true }} Link */

const MOST_CHARACTERS = 8_000;
const MOST_NAME = 500;
const MOST_FILTERS = 50;
const MOST_SORTED = 16;
const VIEWS = /** @type {readonly string[]} */ (["rows", "structure", "ddl"]);
const OPERATORS = new Set(["=", "!=", "<", "<=", ">", ">=", "contains", "starts with", "in", "between", "is null", "is not null"]);
const ID = /^[\w-]{1,64}$/;
const BROKEN = /** @type {Link} */ ({ broken: true });

/** @param {Place} place @param {string} table
 * @param {{ view: View, filters: readonly Filter[], logic: "and" | "or", sort: readonly SortKey[] }} shown */
export function tableLink({ source, database, schema }, table, { view, filters, logic, sort }) {
  const where = filters.map(({ column, operator, value, second }) =>
    (second ? [column, operator, value, second] : value ? [column, operator, value] : [column, operator]));
  return `#/data?${query({
    source, database, schema, table, view: view === "rows" ? "" : view,
    where: where.length ? JSON.stringify(where) : "", any: where.length > 1 && logic === "or" ? "1" : "",
    sort: sort.length ? JSON.stringify(sort.map(({ column, direction }) => [column, direction])) : "",
  })}`;
}

/** @param {string} id */
export const queryLink = (id) => `#/data?${query({ query: id })}`;

/** What the part of an address after `#/data?` asks for; null if it is no link. Whatever is not as
 * the functions above write it is broken as a whole: a condition is never left out.
 * @param {URLSearchParams} fields @returns {Link | null} */
export function readLink(fields) {
  const [source, table, saved] = [fields.get("source"), fields.get("table"), fields.get("query")];
  if (fields.has("tab") || (source === null && table === null && saved === null)) return null;
  if (fields.toString().length > MOST_CHARACTERS) return BROKEN;
  if (saved !== null) return source === null && table === null && ID.test(saved) ? { query: saved } : BROKEN;
  const names = [source, table, fields.get("database") ?? "-", fields.get("schema") ?? "-"];
  if (!names.every((name) => isName(name))) return BROKEN;
  const view = fields.get("view") ?? "rows";
  const filters = listOf(fields.get("where"), MOST_FILTERS, readFilter);
  const sort = listOf(fields.get("sort"), MOST_SORTED, readSort);
  if (!VIEWS.includes(view) || !filters || !sort) return BROKEN;
  return { table: {
    place: { source: String(source), database: fields.get("database"), schema: fields.get("schema") },
    table: String(table), view: /** @type {View} */ (view), filters, logic: fields.get("any") === "1" ? "or" : "and", sort,
  } };
}

/** @param {unknown} value */
const isName = (value) => typeof value === "string" && value.length > 0 && value.length <= MOST_NAME;

/** @template T @param {string | null} text @param {number} most @param {(item: unknown[]) => T | null} read
 * @returns {T[] | null} */
function listOf(text, most, read) {
  if (text === null) return [];
  try {
    const found = JSON.parse(text);
    if (!Array.isArray(found) || found.length > most) return null;
    const items = found.map((each) => (Array.isArray(each) ? read(each) : null));
    return items.includes(null) ? null : /** @type {T[]} */ (items);
  } catch {
    return null;
  }
}

/** @param {unknown[]} item @returns {Filter | null} */
function readFilter([column, operator, value = "", second = "", ...more]) {
  const fits = isName(column) && typeof operator === "string" && OPERATORS.has(operator) &&
    typeof value === "string" && typeof second === "string" && !more.length;
  return fits ? { column: String(column), operator, value, second } : null;
}

/** @param {unknown[]} item @returns {SortKey | null} */
function readSort([column, direction, ...more]) {
  if (!isName(column) || (direction !== "asc" && direction !== "desc") || more.length) return null;
  return { column: String(column), direction };
}
