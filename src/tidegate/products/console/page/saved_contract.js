/**
 * The shapes of what the server answers about saved queries, as types. Nothing here runs.
 *
 * @typedef {"text" | "integer" | "decimal" | "boolean" | "date" | "timestamp"} ParameterType
 * @typedef {{ name: string, type: ParameterType, description: string, default: string | null }} QueryParameter
 * @typedef {{
 *   version: number, by: string, at: number, text: string, parameters: QueryParameter[],
 *   chart: import("./chart_contract.js").ChartSpec | null }} QueryContent
 * @typedef {"" | "viewer" | "approver" | "admin"} Audience
 * @typedef {{
 *   id: string, source: string, database: string | null, schema: string | null, owner: string,
 *   name: string, folder: string, description: string, shared_with: Audience, version: number,
 *   text_version: number, text_by: string, changed_by: string, changed_at: number,
 *   may_change: boolean, ran: number | null }} SavedQuery
 * @typedef {SavedQuery & { content: QueryContent }} QueryText
 * @typedef {{ version: number, by: string, at: number }} QueryVersion
 * @typedef {SavedQuery & { versions: QueryVersion[] }} QueryVersions
 * @typedef {{ queries: SavedQuery[], tabs: Record<string, { query: string, version: number }> }} SavedQueries
 */

export {};
