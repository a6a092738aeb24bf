/** Beside a diagram: what its chosen table has. */

import { data } from "./data_state.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { counted, isolated, visible } from "./text.js";

/** @typedef {import("./diagram_state.js").DiagramState} DiagramState */

/** @param {DiagramState} state @param {number} index @param {{ close: () => void, go: (index: number) => void }} on */
export function tablePanel(state, index, { close, go }) {
  const model = state.shown.peek()?.model;
  const facts = model?.boxes[index]?.facts;
  if (!model || !facts) return null;
  const place = { ...state.place, schema: facts.schema };
  const wires = state.wiresOf(index);
  /** @param {string} heading @param {typeof wires} list @param {(wire: typeof wires[0]) => number} otherOf */
  const keys = (heading, list, otherOf) => (list.length ? h("section", {},
    h("h3", {}, heading),
    h("ul", { class: "plain" }, list.map((wire) => h("li", {},
      h("button", { class: "link", onclick: () => go(otherOf(wire)) }, isolated(model.boxes[otherOf(wire)].facts.name)),
      h("span", { class: "note" }, " by ", visible(wire.facts.columns.join(", ")),
        wire.facts.guessed ? (wire.facts.confirmed ? ", guessed by the values" : ", guessed by the names") : ""))))) : null);
  return h("aside", { class: "diagram-panel", tabindex: "0", "aria-label": `Table ${facts.name}`,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    } },
  h("h2", {}, isolated(facts.name), facts.kind === "table" ? null : [" ", h("span", { class: "tag" }, visible(facts.kind))]),
  facts.comment ? h("p", { class: "note" }, isolated(facts.comment)) : null,
  h("div", { class: "panel-actions" },
    h("button", { class: "small", onclick: () => void data.openTable(place, facts.name) }, icon("table"), "Open"),
    h("button", { class: "small", onclick: () => void data.openView("erDiagram", place, facts.name) }, icon("diagram"), "Neighbours"),
    h("button", { class: "small", onclick: close }, icon("close"), "Close")),
  keys("Refers to", wires.filter(({ from }) => from === index), ({ to }) => to),
  keys("Referred to by", wires.filter(({ to }) => to === index), ({ from }) => from),
  h("section", {}, h("h3", {}, counted(facts.columns.length, "column")),
    h("ul", { class: "columns" }, facts.columns.map((column) => h("li", {},
      h("span", {}, column.key ? h("strong", {}, isolated(column.name)) : isolated(column.name),
        column.masked ? [" ", h("span", { class: "tag" }, "masked")] : null),
      h("span", { class: "note" }, visible(column.type), column.nullable ? "" : ", not null"))))));
}
