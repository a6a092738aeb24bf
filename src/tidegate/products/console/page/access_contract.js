/**
 * The shapes of what the server answers below `access`, as types. Nothing here runs.
 *
 * @typedef {import("./contract.js").Role} Role
 * @typedef {{ scope: string, sources: string[] | null, tags: string[] | null,
 *   tables: string[] | null }} Lists
 * @typedef {Lists & {
 *   id: string, name: string, prefix: string, max_rows_changed: number | null, proxy: boolean,
 *   owner: string, created_at: number, expires_at: number | null, last_used_at: number | null,
 *   revoked_at: number | null, state: "active" | "expired" | "revoked", version: string,
 *   may: { change: boolean, revoke: boolean, why_not: string } }} Token
 * @typedef {{
 *   id: string, client: string, address: string, asked_at: number, expires_at: number,
 *   wanted: Lists & { lasts_s: number | null } }} Pairing
 * @typedef {{
 *   name: string, roles: Role[], created_at: number, sessions: number, invited: boolean,
 *   may: { roles: boolean, remove: boolean, link: boolean, why_not: string } }} Operator
 * @typedef {{
 *   id: string, operator: string, since: number, seen_at: number, address: string,
 *   browser: string, current: boolean }} OperatorSession
 * @typedef {{
 *   operators: Operator[], sessions: OperatorSession[], tokens: Token[], pairings: Pairing[],
 *   invited: boolean, grants: import("./contract.js").Card[],
 *   may: { end: boolean, revoke: boolean, make: boolean, of: string[] | null, operators: boolean,
 *     why_not: string } }} Access
 *
 * @typedef {{
 *   id: string, token: string, owner: string, source: string, about: string, measure: string,
 *   window: string, units: number, amount: string, size: string, left: string, share: number,
 *   renews_at: number, changed_at: number, changed_by: string }} Budget
 * @typedef {{
 *   budgets: Budget[], measures: string[], windows: string[], tokens: string[], owners: string[],
 *   sources: string[], may: { set: boolean, whole: boolean } }} Budgets
 *
 * @typedef {"allow" | "masked" | "ask" | "deny"} CellKind
 * @typedef {{
 *   id: string, kind: "token" | "operator" | "request" | "other", name: string, scope: string,
 *   kept: string }} Caller
 * @typedef {{ name: string, label: string, kinds: string[] }} Verb
 * @typedef {{
 *   verbs: Verb[], callers: Caller[], more: boolean, by_source: boolean, why_not: string
 *   }} Choices
 * @typedef {{
 *   kind: CellKind, rule: string, reason: string, confirms: boolean, differs: boolean
 *   }} MatrixCell
 * @typedef {import("./contract.js").SourceLook & { engine: string }} MatrixSource
 * @typedef {{
 *   source?: MatrixSource, caller?: Caller, cells: MatrixCell[] | null, problem: string,
 *   role: string }} MatrixRow
 * @typedef {{ rows: MatrixRow[], total: number, next: string | null, server_ms: number }} Matrix
 * @typedef {{ name: string, value: string, kept: string }} Setting
 * @typedef {{ rule: string, says: string, found: string, reason: string | null }} Finding
 * @typedef {{
 *   caller: Caller, source: MatrixSource, verb: string, label: string, kind: CellKind,
 *   confirms: boolean, rule: string, reason: string, hint: string | null,
 *   kinds: { word: string, kind: CellKind, reason: string }[], settings: Setting[],
 *   rules: Finding[], limits: { kind: string, text: string, kept: string }[] }} CellDetail
 * @typedef {{
 *   verdict: "allow" | "ask" | "confirm" | "deny", rule: string, reason: string,
 *   hint: string | null, effect: string, judged_by: string, tables: string[],
 *   settings: Setting[], rules: Finding[] }} Asked
 * @typedef {{
 *   columns: { name: string, masked: boolean }[], rows: (string | null)[][], more: boolean }} Preview
 */

export {};
