/**
 * The shapes of what the server answers about edits of rows, as types. Nothing here runs.
 *
 * A value of an edit: NULL, a text exactly as the database writes it, bytes, or DEFAULT.
 * @typedef {null | { text: string, class?: string } | { hex: string } | { default: true }} Cell
 * @typedef {Record<string, Cell>} Cells
 * @typedef {{ name: string, type: string, editor: string, nullable: boolean, default: string | null,
 *   has_default: boolean, key: number | null, editable: boolean, insertable?: boolean, reason: string, masked: boolean,
 *   values: string[] | null, length: number | null, classes: string[] | null,
 *   references: Reference | null }} EditColumn
 * @typedef {{ database: string | null, schema: string | null, table: string, columns: string[],
 *   from: string[] }} Reference
 * @typedef {{ database: string | null, schema: string | null, table?: string, name?: string }} EditTable
 * @typedef {{ table: EditTable | null, editable: boolean, reason: string, asks: boolean, undo: boolean,
 *   most_rows: number, key: string[], columns: EditColumn[],
 *   result?: { column: string | null }[], refused?: Record<string, string> }} Editability
 *
 * @typedef {{ id: string, kind: "insert" | "update" | "delete", key: string[] | null,
 *   before: Cells | null, cells: Cells }} Staged
 * @typedef {{ insert: number, update: number, delete: number }} Counts
 * @typedef {{ version: number, table: EditTable | null, rows: Staged[], counts: Counts,
 *   result: Submission | null }} EditsOfTab
 * @typedef {{ id: string, problem: "changed" | "gone" | "invalid", message: string, column?: string | null,
 *   now?: Cells | null }} Problem
 * @typedef {{ version: number, rows: Staged[], counts: Counts, problems: Problem[] }} PutEdits
 * @typedef {{ name: string, before: Cell, theirs: Cell, yours: Cell }} ConflictColumn
 * @typedef {{ id: string, problem: "changed" | "gone" | "exists", columns: ConflictColumn[],
 *   theirs: Cells | null }} Conflict
 * @typedef {{ id: string, tab: string,
 *   state: "running" | "asking" | "done" | "conflict" | "failed" | "cancelled" | "unknown",
 *   started_at: number, ended_at: number | null, elapsed_ms: number, counts: Counts,
 *   approval: string | null, change_id: string | null, call_id: string, code: string, message: string,
 *   hint: string, columns: string[],
 *   rows: { id: string, kind: string, was?: string[] | null, key: string[] | null, row: import("./data_contract.js").DataCell[] | null }[],
 *   conflicts: Conflict[], conflict_count: number, notes: string[] }} Submission
 */

export {};
