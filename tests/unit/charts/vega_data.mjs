// Reads {modules, cases: [{spec, values}]} and writes, for each, the data of its marks as Vega-Lite
// computes them, and the domains of its discrete scales. One process for all.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

const { modules, cases } = JSON.parse(await text(process.stdin));
const load = (name) => import(pathToFileURL(createRequire(`${modules}/x.js`).resolve(name)));
const vega = await load("vega");
const { compile } = await load("vega-lite");
const quiet = { level: () => quiet, error: (m) => { throw new Error(m); }, warn: () => quiet, info: () => quiet, debug: () => quiet };

const found = [];
for (const { spec, values } of cases) {
  const compiled = compile({ data: { values }, ...spec }, { logger: quiet }).spec;
  compiled.axes = compiled.legends = [];  // years of ticks by the second have no room
  for (const scale of compiled.scales ?? []) delete scale.nice;
  const view = new vega.View(vega.parse(compiled), { renderer: "none", logger: quiet });
  await view.runAsync();
  const from = compiled.marks[0].from;
  const domains = {};
  for (const name of ["x", "y", "color"]) {
    if (compiled.scales?.some((scale) => scale.name === name)) domains[name] = view.scale(name).domain().map((each) => (each instanceof Date ? each.getTime() : each));
  }
  const rows = view.data(from.facet?.data ?? from.data);
  found.push({ rows: rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value instanceof Date ? value.getTime() : value]))), domains });
  view.finalize();
}
process.stdout.write(JSON.stringify(found));
