/**
 * The shapes of what the server answers about statements, as types. Nothing here runs.
 * Offsets count UTF-16 code units.
 *
 * @typedef {{
 *   start: number, end: number, effect: string, tables: string[],
 *   verdict: "allow" | "ask" | "deny", why: string }} Judged
 * @typedef {{
 *   statements: Judged[], spans: [string, string][] | null,
 *   error: { message: string, at: number | null } | null }} Judgement
 * @typedef {{ label: string, insert: string, kind: string, detail: string }} Suggestion
 * @typedef {{ from: number, to: number, items: Suggestion[] }} Suggestions
 * @typedef {Record<string, string | null> | (string | null)[] | null} Params
 * @typedef {{
 *   id: string, tab: string, source: string,
 *   state: "running" | "asking" | "done" | "failed" | "cancelled" | "unknown",
 *   started_at: number, ended_at: number | null,
 *   progress: { done: number | null, total: number | null, text: string } | null,
 *   columns: import("./data_contract.js").DataColumn[], row_count: number, truncated: boolean,
 *   limit: number | null, affected: number | null, elapsed_ms: number, code: string,
 *   message: string, hint: string, at: number | null, approval: string | null,
 *   change_id: string | null, call_id: string, effect: string, warnings: string[],
 *   rows_gone?: boolean, statement?: string, params?: Params,
 *   types?: Record<string, string> | null }} DataRun
 * @typedef {{ rows: import("./data_contract.js").DataCell[][], row_count: number }} RunRows
 * @typedef {{
 *   label: string, detail: string, rows: number | null, actual_rows: number | null,
 *   cost: number | null, ms: number | null, children: PlanNode[] }} PlanNode
 * @typedef {{ text: string, tree: PlanNode | null, reason: string }} Plan
 * @typedef {{
 *   statement: string, source: string, at: number, ok: boolean, rows: number | null,
 *   ms: number | null }} HistoryEntry
 */

export {};
