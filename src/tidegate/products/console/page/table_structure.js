/** What a table is made of, and the statement that makes it. */

import { columnFigures } from "./column_bars.js";
import { data } from "./data_state.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { tableBox } from "./rows.js";
import { plainStatement, statementView } from "./statement.js";
import { tell } from "./state.js";
import { isolated, prose, visible } from "./text.js";

/** @typedef {import("./data_contract.js").Place} Place */
/** @typedef {import("./data_contract.js").TableEnd} TableEnd */
/** @typedef {import("./data_contract.js").TableFacts} TableFacts */
/** @typedef {import("./dom.js").Child} Child */

/** @param {string} title @param {string[]} head @param {Child[][]} rows @param {string} none */
function part(title, head, rows, none) {
  return h("section", { class: "part" }, h("h3", {}, title),
    rows.length ? tableBox(title, h("table", { class: "facts-table" },
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((each, at) =>
        (at ? h("td", {}, each) : h("th", { scope: "row" }, each))))))))
      : h("p", { class: "note" }, visible(none)));
}

/** @param {readonly string[]} all */
const names = (all) => all.map((name, at) => [at ? ", " : "", isolated(name)]);

/** @param {Place} place @param {TableEnd} end */
function tableLink(place, end) {
  const to = { source: place.source, database: end.database ?? place.database, schema: end.schema ?? place.schema };
  return h("button", { class: "link small", onclick: () => void data.openTable(to, end.table) },
    end.schema && end.schema !== place.schema ? [isolated(end.schema), "."] : null, isolated(end.table),
    " (", names(end.columns), ")");
}

/** @param {TableFacts} facts @param {Place} place */
export function structureView(facts, place) {
  const figures = columnFigures({ ...place, schema: facts.schema ?? place.schema }, facts.name);
  return h("div", { class: "structure" },
    facts.kind === "table" ? h("button", { class: "small", onclick: () => void data.openView("createTable", { ...place, schema: facts.schema ?? place.schema }, facts.name) },
      icon("column"), "Change by a form") : null, figures.bar,
    part("Columns", ["Name", "Type", "Key", "May be NULL", "NULL", "Values", "Default", "Comment"], facts.columns.map((column) => [
      [isolated(column.name), column.masked ? h("span", { class: "tag" }, icon("mask"), " masked") : null],
      [h("code", {}, h("bdi", {}, visible(column.type))), column.type_definition
        ? h("div", { class: "note" }, isolated(column.type_definition)) : null], column.key === null ? "" : `key ${column.key}`,
      column.nullable ? "yes" : "no", figures.nulls(column.name), figures.values(column.name),
      column.generated ? ["generated ", column.default === null ? "" : h("code", {}, visible(column.default))]
        : column.default === null ? "" : h("code", {}, visible(column.default)),
      [column.extra ? h("code", {}, visible(column.extra)) : null, column.extra && column.comment ? " " : null,
        column.comment ? isolated(column.comment) : null],
    ]), "The columns are not known."),
    part("Foreign keys", ["Columns", "Refers to", "Name"], facts.foreign_keys.map((key) =>
      [names(key.columns), tableLink(place, key.to), isolated(key.name)]), "It refers to no table."),
    part("Referenced by", ["Table", "Through", "Name"], facts.referenced_by.map((key) =>
      [tableLink(place, key.from), names(key.columns), isolated(key.name)]), "No table refers to it."),
    part("Indexes", ["Name", "Columns", "Kind", "Only where"], facts.indexes.map((index) => [
      isolated(index.name), names(index.columns),
      [index.primary ? "primary, " : index.unique ? "unique, " : "", isolated(index.method || "index")],
      index.partial ? h("code", {}, visible(index.partial)) : "",
    ]), "It has no index."),
    part("Triggers", ["Name", "When", "On"], facts.triggers.map((trigger) =>
      [isolated(trigger.name), visible(trigger.timing), visible(trigger.event)]),
    facts.triggers_reason || "It has no trigger."));
}

/** @param {TableFacts} facts */
export function definitionView(facts) {
  if (!facts.ddl) return h("p", { class: "note" }, visible(facts.ddl_reason || "The source gives no definition."));
  const { ddl, ddl_spans } = facts;
  return h("div", { class: "definition" },
    h("button", { class: "small", onclick: () => void navigator.clipboard.writeText(ddl).then(() => tell("Copied")) },
      icon("copy"), "Copy"),
    ddl_spans?.length ? statementView(ddl_spans) : plainStatement(ddl),
    facts.ddl_reason ? h("p", { class: "note" }, prose(facts.ddl_reason)) : null);
}
