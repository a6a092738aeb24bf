/**
 * The shapes of what the server of a source shows, as types. Nothing here runs.
 *
 * @typedef {{ columns: string[], rows: (string | null)[][], reason: string, without_texts: string }} ServerPanel
 * @typedef {"rights" | "sessions" | "blocking" | "statements" | "sizes" | "memory"} PanelName
 * @typedef {{
 *   source: string, engine: string, panels: Record<PanelName, ServerPanel>, may_cancel: boolean,
 *   slow: { own: boolean, searched: number, statements: { statement: string, at: number, ms: number }[] } }} ServerState
 */

export {};
