/**
 * The shapes of diagrams, as types. Nothing here runs.
 *
 * @typedef {{ w: number, h: number }} Size
 * @typedef {[number, number]} Spot the left and the upper edge
 * @typedef {typeof import("./dagre.esm.js")} Dagre
 * @typedef {{ at: Map<number, Spot>, w: number, h: number }} Block
 * @typedef {{ name: string, type: string, key: number, refers: boolean, nullable: boolean, masked: boolean }} Column
 * @typedef {{ schema: string, name: string, kind: string, comment: string, columns: Column[] }} TableFacts
 * @typedef {{
 *   from: number, columns: string[], to: number, references: string[], name: string,
 *   guessed: boolean, confirmed: boolean }} LinkFacts
 * @typedef {{
 *   database: string, schema: string, total: number, tables: TableFacts[], links: LinkFacts[],
 *   choose: [string, string, number][] | null, comparing: boolean }} DiagramFacts
 * @typedef {"keys" | "all"} Mode
 * @typedef {{ mark: string, name: string, type: string, masked: boolean }} Line
 * @typedef {{ facts: TableFacts, key: string, title: string, lines: Line[], lineOf: Map<string, number>, w: number, h: number }} Box
 * @typedef {{ facts: LinkFacts, from: number, to: number, fromLine: number, toLine: number }} Wire
 * @typedef {{ boxes: Box[], wires: Wire[] }} Model
 * @typedef {[string, string, number, number]} KeptPlace a table and its place
 * @typedef {{ mode: Mode, guessed: boolean, only: [string, string][] | null, places: Record<Mode, KeptPlace[]> }} Kept what the tab keeps
 * @typedef {{ id: number, sizes: Size[], links: [number, number][], kept: (Spot | null)[] }} LayoutTask
 */

export {};
