/** In the place of a diagram: which tables it is to show. */

import { h } from "./dom.js";
import { signal } from "./signals.js";
import { counted, isolated, number } from "./text.js";

/** @typedef {import("./diagram_state.js").DiagramState} DiagramState */

const [MOST_TABLES, MOST_NAMES] = [300, 300];

/** @param {DiagramState} state */
export function chooser(state) {
  const facts = state.facts.peek();
  const listed = facts?.choose ?? (facts?.tables ?? []).map(({ schema, name }, index) =>
    /** @type {[string, string, number]} */ ([schema, name, state.wiresOf(index).length]));
  const names = [...listed].sort((one, other) => other[2] - one[2] || one[1].localeCompare(other[1]));
  const wanted = signal(new Set((state.only.peek() ?? []).map((name) => JSON.stringify(name))));
  const typed = signal("");
  const matching = () => names.filter(([, name]) => name.toLowerCase().includes(typed.value.trim().toLowerCase()));
  /** @param {string} key @param {boolean} on */
  const set = (key, on) => {
    const next = new Set(wanted.peek());
    if (on) next.add(key);
    else next.delete(key);
    wanted.value = next;
  };
  const filter = h("input", { type: "search", "aria-label": "Search the names", placeholder: "Search the names",
    oninput: () => (typed.value = filter.value) });
  return h("form", { class: "diagram-choose", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    if (wanted.peek().size && wanted.peek().size <= MOST_TABLES) void state.choose([...wanted.peek()].map((key) => JSON.parse(key)));
  } },
  h("h2", {}, "Which tables?"),
  h("p", { class: "lead" }, facts?.choose
    ? `There are ${counted(facts.total, "table")}, and a diagram shows ${MOST_TABLES} at most. Those with the most keys come first.`
    : "Those with the most keys come first."),
  filter,
  h("div", { class: "actions" },
    h("button", { type: "submit", class: "primary", "aria-disabled": () => String(!wanted.value.size || wanted.value.size > MOST_TABLES) },
      () => `Draw ${counted(wanted.value.size, "table")}`),
    h("button", { type: "button", class: "small", onclick: () => (wanted.value = new Set([...wanted.peek(),
      ...matching().map(([schema, name]) => JSON.stringify([schema, name]))].slice(0, MOST_TABLES))) }, "Choose all that match"),
    h("button", { type: "button", class: "small", onclick: () => (wanted.value = new Set()) }, "Choose none"),
    facts?.choose ? null : h("button", { type: "button", class: "small", onclick: () => (state.choosing.value = false) }, "Back")),
  () => {
    const found = matching();
    return [
      found.length > MOST_NAMES ? h("p", { class: "note" }, `The first ${MOST_NAMES} of ${number(found.length)} that match:`) : null,
      h("ul", {}, found.slice(0, MOST_NAMES).map(([schema, name, keys]) => {
        const key = JSON.stringify([schema, name]);
        const box = h("input", { type: "checkbox", checked: () => wanted.value.has(key), onchange: () => set(key, box.checked) });
        return h("li", {}, h("label", { class: "check" }, box, h("span", {}, isolated(name), " ",
          h("span", { class: "note" }, counted(keys, "key")))));
      })),
    ];
  });
}
