/**
 * The shapes of what the server answers below `sources`, as types. Nothing here runs.
 *
 * @typedef {"words" | "number" | "text" | "entries" | "other"} SettingForm
 * @typedef {{
 *   name: string, form: SettingForm, words: string[], default: any, meaning: string, syntax: string,
 *   group: string, shows: boolean }} DeclaredSetting
 * @typedef {import("./contract.js").SourceLook & {
 *   engine: string, dialect: string, url: string, password: "" | "file" | "keyring",
 *   from: "state" | "settings", version: string, settings: Record<string, any>, problem: string
 *   }} ListedSource
 * @typedef {{ sources: ListedSource[], declared: DeclaredSetting[], folders: string[] }} SourceListing
 *
 * @typedef {{
 *   cells: import("./access_contract.js").MatrixCell[] | null, hidden: string[], problem: string
 *   } | null} Rights
 * @typedef {{
 *   caller: import("./access_contract.js").Caller, before: Rights, after: Rights, changed: boolean
 *   }} ComparedRow
 * @typedef {{
 *   verbs: { name: string, label: string }[], rows: ComparedRow[], total: number, changed: number
 *   }} Compared
 * @typedef {{
 *   names: string[], widens: string[], passphrase: boolean, asks_password: boolean,
 *   matrix: Compared, command: string, patch: string }} SourcePreview
 * @typedef {{
 *   report: { database: string, server_version: string, tables: number, views: number,
 *     opened_ms: number, warnings: string[], unfit: string[],
 *     risks: { could: string, remedy: string }[] } | null,
 *   message: string, hint: string, may_pass: boolean }} TriedSource
 * @typedef {{ name: string, notes: string[] }} SavedSource
 *
 * @typedef {{
 *   name: string, version: string, url?: string, settings: Record<string, any>,
 *   keep_in: "file" | "keyring" }} SourceDraft
 */

export {};
