/**
 * The shapes of what the server answers about imports of files, as types. Nothing here runs.
 *
 * @typedef {{
 *   encoding: string, delimiter: string, header: boolean, nulls: string[], decimal: string, dates: string,
 *   trims: boolean, sheet: string }} Reading
 * @typedef {{ line: number, column: string, message: string }} LineError
 * @typedef {"checking" | "checked" | "invalid" | "running" | "asking" | "done" | "failed" | "cancelled" | "unknown"} RunState
 * @typedef {{
 *   state: RunState, table: string | null, schema: string | null, source: string | null, asks: boolean,
 *   cannot_undo: string, count: number, done: number, digest: string, errors: LineError[], error_count: number,
 *   line: number | null, elapsed_ms: number, approval: string | null, change_id: string | null, call_id: string,
 *   code: string, message: string, hint: string, notes: string[] }} ImportRun
 * @typedef {{
 *   id: string, name: string, size: number, received: number,
 *   phase: "receiving" | "reading" | "ready" | "unreadable", message: string,
 *   kind: "text" | "workbook" | "parquet", digest: string, reading: Reading, is_order_sure: boolean, note: string,
 *   sheets: string[], columns: { name: string, kind: string }[],
 *   rows: { line: number, problem: string, values: (string | null)[] }[], run: ImportRun | null }} FileImport
 */

export {};
