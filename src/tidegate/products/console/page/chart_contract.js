/**
 * The shapes of charts, as types. Nothing here runs. A specification is a subset of Vega-Lite's.
 *
 * @typedef {"quantitative" | "temporal" | "ordinal" | "nominal"} FieldType
 * @typedef {{
 *   field?: string, type?: FieldType, aggregate?: string, bin?: true | { maxbins?: number }, timeUnit?: string,
 *   sort?: string | null | (string | number | null)[], stack?: string | boolean | null,
 *   scale?: { type?: string } }} ChartChannel
 * @typedef {"x" | "y" | "color"} ChannelName
 * @typedef {{ mark: string, encoding: { x: ChartChannel, y: ChartChannel, color?: ChartChannel } }} ChartSpec
 * @typedef {{ spec: ChartSpec | null, chart: import("./chart.js").ChartData | null }} MadeChart
 */

export {};
