/**
 * The shapes of what the server answers about data, as types. Nothing here runs.
 *
 * @typedef {{ source: string, database: string | null, schema: string | null }} Place
 * @typedef {{ text: string, bytes: number, cut: true }} CutCell
 * @typedef {{ binary: number, text: string }} BinaryCell
 * @typedef {{ default: true }} DefaultCell
 * @typedef {string | null | CutCell | BinaryCell | DefaultCell} DataCell
 * @typedef {"number" | "text" | "time" | "bool" | "json" | "binary" | "other"} ColumnKind
 * @typedef {{ name: string, type: string, kind: ColumnKind, masked: boolean }} DataColumn
 * @typedef {{ text: string, bytes: number, binary: boolean }} WholeCell
 *
 * @typedef {{
 *   name: string, engine: string, dialect: string, color: number, group?: string,
 *   state: "open" | "idle" | "failed", message: string, language: string, saved: boolean,
 *   may: { read: boolean, write: boolean, why_not: string } }} DataSource
 * @typedef {{ database: string | null, name: string, tables: number | null, current: boolean }} SchemaInfo
 * @typedef {{ databases: string[] | null, schemas: SchemaInfo[] }} Schemas
 * @typedef {{
 *   name: string, schema: string | null, database: string | null, kind: string,
 *   rows: number | null, comment: string }} TableInfo
 * @typedef {{ tables: TableInfo[], next: string | null, total: number | null }} TablesPage
 * @typedef {{
 *   source: string, database: string | null, schema: string | null, table: string, kind: string,
 *   column: string | null, type: string | null }} Match
 * @typedef {{ matches: Match[], more: boolean, unread: { source: string, reason: string }[] }} Found
 *
 * @typedef {{ database: string | null, schema: string | null, table: string, columns: string[] }} TableEnd
 * @typedef {{
 *   name: string, type: string, kind: ColumnKind, nullable: boolean, default: string | null,
 *   generated: boolean | string, key: number | null, masked: boolean, comment: string, extra?: string,
 *   type_definition?: string
 *   }} TableColumn
 * @typedef {{ name: string, columns: string[], to: TableEnd }} ForeignKey
 * @typedef {{ name: string, columns: string[], from: TableEnd }} Referrer
 * @typedef {{
 *   name: string, columns: string[], unique: boolean, primary: boolean, method: string,
 *   partial: string }} TableIndex
 * @typedef {{
 *   name: string, schema: string | null, database: string | null, kind: string, comment: string,
 *   rows: number | null, filtered: boolean, ddl: string | null, ddl_reason: string, ddl_spans?: [string, string][] | null,
 *   columns: TableColumn[], foreign_keys: ForeignKey[], referenced_by: Referrer[],
 *   indexes: TableIndex[], triggers: { name: string, timing: string, event: string }[],
 *   triggers_reason?: string }} TableFacts
 *
 * @typedef {{ column: string, operator: string, value: string, second: string }} Filter
 * @typedef {{ column: string, direction: "asc" | "desc" }} SortKey
 * @typedef {{
 *   columns: DataColumn[], rows: DataCell[][], keys: string[][], next: string | null,
 *   paging: "keyset" | "offset", warnings: string[], elapsed_ms: number, call_id: string
 *   }} RowsPage
 *
 * @typedef {"query" | "table" | "createTable" | "erDiagram" | "serverDashboard" | "terminal"} TabKind
 * @typedef {{
 *   id: string, window: string, source: string, kind: TabKind, title: string,
 *   database: string | null, schema: string | null, table: string | null, text: string | null,
 *   position: number, opened_by: string, opened_at: number, focused_at: number,
 *   is_active: boolean, version: number,
 *   chart?: import("./chart_contract.js").ChartSpec | null }} DataTab
 * @typedef {{ tab: DataTab, action: "opened" | "focused" | "changed" | "closed", by: string }} TabEvent
 */

export {};
