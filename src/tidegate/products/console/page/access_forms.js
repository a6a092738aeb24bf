/** Forms that give rights: they stay open until the server agrees, and no Enter sends them. */

import { errorText } from "./api.js";
import { begin, leaveByEscape } from "./dialogs.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { session } from "./state.js";
import { isolated, prose } from "./text.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./access_contract.js").Lists} Lists */

let count = 0;

/** What `send` of a form gives where the form stays open with all that was typed. */
export const STAY = Symbol("stay");

/** Show a form; resolves with what `send` gives, or null when the form was left. Its button is
 * clicked, or pressed by the space bar: Enter does nothing here.
 * @template T
 * @param {{ title: string, body: Child, action: string, kind?: string, send: () => Promise<T | typeof STAY>,
 *   signal?: AbortSignal, onInput?: () => void }} options `onInput` is called at each change of a field
 * @returns {Promise<T | null>} */
export function form({ title, body, action, kind = "primary", send, signal: ended, onInput }) {
  const id = `form-${(count += 1)}`;
  const [error, sending] = [signal(""), signal(false)];
  return new Promise((resolve) => {
    /** @param {T | null} value */
    const leave = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const accept = async () => {
      if (sending.peek()) return;
      sending.value = true;
      error.value = "";
      try {
        const value = await send();
        if (value !== STAY) leave(/** @type {T} */ (value));
      } catch (caught) {
        error.value = errorText(caught);
      } finally {
        sending.value = false;
      }
    };
    const dialog = h("dialog", {
      "aria-labelledby": id,
    }, h("form", {
      onsubmit: (/** @type {Event} */ event) => event.preventDefault(),
      oninput: () => onInput?.(),
    },
      h("h2", { id }, title),
      h("div", { class: "dialog-body" }, body),
      () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "quiet", onclick: () => leave(null) }, "Cancel"),
        h("button", {
          type: "button", class: kind, "aria-disabled": () => String(sending.value),
          onclick: () => void accept(),
          onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === "Enter") event.preventDefault();
          },
        }, action))));
    ended?.addEventListener("abort", () => leave(null), { once: true });
    leaveByEscape(dialog, () => leave(null));
    document.body.append(dialog);
    dialog.showModal();
    begin(dialog.querySelector("input, textarea, select") ?? dialog.querySelector(".quiet"));
  });
}

/** Show a secret once. It is in this dialog and nowhere else in the page.
 * @param {{ title: string, note: Child, secret: string }} options */
export function showSecret({ title, note, secret }) {
  const id = `form-${(count += 1)}`;
  const copied = signal("");
  return new Promise((resolve) => {
    const leave = () => {
      field.value = "";
      dialog.close();
      dialog.remove();
      resolve(null);
    };
    const field = h("input", {
      id: `${id}-secret`, class: "secret", readonly: true, spellcheck: "false",
      autocomplete: "off", value: secret, onfocus: () => field.select(),
    });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(secret);
        copied.value = "Copied.";
      } catch {
        field.focus();
        copied.value = "It is selected: copy it with Ctrl C.";
      }
    };
    const button = h("button", { type: "button", class: "primary", onclick: () => void copy() }, "Copy");
    const dialog = h("dialog", {
      // Escape would lose it: only Done leaves.
      "aria-labelledby": id, oncancel: (/** @type {Event} */ event) => event.preventDefault(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Escape") event.preventDefault();
      },
    }, h("form", { onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      h("h2", { id }, title),
      h("div", { class: "dialog-body" }, h("p", {}, note),
        h("label", { for: `${id}-secret` }, "Shown once"), field,
        h("p", { class: "note", role: "status" }, () => copied.value)),
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "quiet", onclick: leave }, "Done"), button)));
    document.body.append(dialog);
    dialog.showModal();
    button.focus();
  });
}

/** A labelled field. @param {string} id @param {string} label @param {Child} field @param {string} [note] */
export const labelled = (id, label, field, note) => h("div", { class: "field" },
  h("label", { for: id }, label), field,
  note ? h("p", { class: "note", id: `${id}-note` }, note) : null);

/** The field for the passphrase. @param {string} [label] */
export function passphraseField(label = "Your passphrase") {
  const input = h("input", {
    type: "password", id: "consent", autocomplete: "current-password", spellcheck: "false",
  });
  return { node: labelled("consent", label, input), read: () => input.value };
}

/** A choice of one word. @param {string} id @param {[string, string][]} choices @param {string} chosen */
export const select = (id, choices, chosen) => h("select", { id }, choices.map(([value, label]) =>
  h("option", { value, selected: value === chosen }, label)));

/** Names, chosen one by one from those there are, or all of them.
 * @param {{ id: string, label: string, known: string[], chosen: string[] | null, all: boolean,
 *   note?: string }} options `all`: every source may be chosen at once */
export function namePicker({ id, label, known, chosen, all, note }) {
  const names = signal(chosen ?? []);
  const everything = signal(all && chosen === null);
  const input = h("input", { id, list: `${id}-known`, autocomplete: "off", spellcheck: "false" });
  const add = () => {
    const name = input.value.trim();
    if (name && !names.peek().includes(name)) names.value = [...names.peek(), name];
    input.value = "";
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    add();
  });
  /** @param {string} name */
  const remove = (name) => {
    names.value = names.peek().filter((each) => each !== name);
    input.focus();
  };
  const box = h("input", {
    type: "checkbox", checked: everything.peek(),
    onchange: () => (everything.value = box.checked),
  });
  const node = h("fieldset", { class: "picker" }, h("legend", {}, label),
    all ? h("label", { class: "check" }, box, "All sources, also those to come") : null,
    h("div", { class: () => (everything.value ? "hidden" : "picked") },
      h("ul", { class: "chosen" }, () => names.value.map((name) => h("li", {}, isolated(name),
        h("button", { type: "button", class: "small quiet", onclick: () => remove(name) }, "×",
          h("span", { class: "sr" }, ` Leave ${name} out`))))),
      h("div", { class: "add" }, h("label", { for: id, class: "sr" }, `A name for: ${label}`), input,
        h("button", { type: "button", class: "small", onclick: add }, "Add",
          h("span", { class: "sr" }, ` to ${label}`))),
      h("datalist", { id: `${id}-known` }, known.map((name) => h("option", { value: name }))),
      note ? h("p", { class: "note" }, note) : null));
  return {
    node,
    read: () => {
      add();
      return everything.peek() ? null : names.peek();
    },
  };
}

const SCOPES = /** @type {[string, string][]} */ ([
  ["readOnly", "read (readOnly)"], ["readWrite", "read and change (readWrite)"],
  ["fullAccess", "everything that the sources admit (fullAccess)"],
]);
const TIMES = /** @type {[string, string][]} */ ([
  ["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["365d", "1 year"],
  ["never", "never ends"],
]);

/** The fields of what a token may do.
 * @param {{ given: Lists & { max_rows_changed?: number | null }, of: string[] | null, keep?: string,
 *   expires: string, narrow?: boolean }} options `of`: the sources that may be given, null all;
 *   `keep`: what "as it is" means; `narrow`: no wider scope is offered */
export function rightsFields({ given, of, keep, expires, narrow = false }) {
  const known = of ?? session.peek()?.sources.map(({ name }) => name) ?? [];
  const place = SCOPES.findIndex(([value]) => value === given.scope);
  const scope = select("scope", narrow ? SCOPES.slice(0, place + 1) : SCOPES, given.scope);
  const sources = namePicker({
    id: "sources", label: "Sources", known, chosen: given.sources,
    all: of === null && (!narrow || (given.sources === null && given.tags === null)),
    note: "Enter adds a name.",
  });
  const tags = h("input", { id: "tags", value: (given.tags ?? []).join(", "), spellcheck: "false" });
  const tables = h("input", {
    id: "tables", value: (given.tables ?? []).join(", "), spellcheck: "false",
    "aria-describedby": "tables-note",
  });
  const rows = h("input", {
    id: "rows", type: "number", min: "1", inputmode: "numeric",
    value: given.max_rows_changed ? String(given.max_rows_changed) : "",
  });
  const ends = select("expires", keep ? [["keep", keep], ...TIMES] : TIMES, expires);
  const node = [
    labelled("scope", "May at most", scope),
    sources.node,
    of === null ? labelled("tags", "Also sources with one of these tags", tags) : null,
    labelled("tables", "Only these tables (empty: all)", tables,
      "With commas between: orders, public.orders or shop:orders."),
    h("div", { class: "pair" },
      labelled("rows", "Rows a change may be about", rows),
      labelled("expires", "Ends after", ends)),
  ];
  /** @param {HTMLInputElement} input */
  const list = (input) => {
    const names = input.value.split(",").map((each) => each.trim()).filter(Boolean);
    return names.length ? names : null;
  };
  const read = () => {
    const [named, tagged] = [sources.read(), list(tags)];
    return {
      scope: scope.value,
      sources: named && !named.length && tagged ? null : named,
      tags: tagged,
      tables: list(tables),
      max_rows_changed: rows.value ? Number(rows.value) : null,
      expires: ends.value,
    };
  };
  return { node, read };
}

/** The field for the owner of a token: an admin of all sources may name another operator.
 * @param {import("./access_contract.js").Operator[]} operators @param {boolean} any */
export function ownerField(operators, any) {
  const own = session.peek()?.operator.name ?? "";
  if (!any) {
    return { node: h("p", { class: "note" }, "Its owner is you, ", isolated(own), "."), read: () => own };
  }
  const field = select("owner", operators.map(({ name }) => [name, name]), own);
  return {
    node: labelled("owner", "Owner, whose yes does not count for it", field),
    read: () => field.value,
  };
}

/** What a list of rights is, in words. @param {Lists} lists @returns {Child} */
export function listWords({ sources, tags, tables }) {
  const places = [...(sources ?? []), ...(tags ?? []).map((tag) => `#${tag}`)];
  const all = sources === null && tags === null;
  return [
    all ? "all sources" : places.map((name, index) => [index ? ", " : "", isolated(name)]),
    tables ? [h("br"), "only ", tables.map((name, index) => [index ? ", " : "", isolated(name)])] : null,
  ];
}
