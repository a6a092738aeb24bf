/**
 * The shapes of what the server answers about forms of tables, as types. Nothing here runs.
 *
 * @typedef {{ kind: "literal" | "expression", text: string }} ColumnDefault
 * @typedef {{
 *   name: string, type: string, nullable: boolean, default: ColumnDefault | null, identity: boolean,
 *   comment: string, fixed: string, was: string }} ColumnForm
 * @typedef {{
 *   columns: string[], table: string, references: string[], name: string, schema: string,
 *   on_delete: string, on_update: string }} KeyForm
 * @typedef {{ name: string, columns: string[], unique: boolean, fixed: boolean }} IndexForm
 * @typedef {{
 *   name: string, schema: string, columns: ColumnForm[], primary_key: string[],
 *   foreign_keys: KeyForm[], indexes: IndexForm[], comment: string }} TableForm
 * @typedef {{ schema: string, name: string, key: string[] }} KeyedTable
 * @typedef {{
 *   form: TableForm, database: string, lacks: Record<string, string>, types: string[],
 *   tables: KeyedTable[] }} FormFacts
 * @typedef {{
 *   text: string, warnings: string[], effect: string, verdict: "allow" | "ask" | "deny",
 *   why: string }} FormStep
 * @typedef {{ steps: FormStep[], lacks: string[], stays: string, stale: boolean }} FormPlan
 */

export {};
