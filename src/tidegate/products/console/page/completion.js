/**
 * Suggestions under the caret. The list never takes the focus, an answer for another text is
 * dropped, and typing goes on whether one comes or not.
 *
 * A text area of many lines may not have the role of a combobox, so the list is named by
 * `aria-controls` and its chosen entry by `aria-activedescendant`, which a text box may have.
 */

import { errorText } from "./api.js";
import { each, h } from "./dom.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { say, tell } from "./state.js";
import { counted, isolated } from "./text.js";

/** @typedef {import("./query_contract.js").Suggestion} Suggestion */
/** @typedef {import("./query_contract.js").Suggestions} Suggestions */
/** @typedef {{ from: number, to: number, items: Suggestion[] }} Open */

const WAIT_MS = 90;
const WORD = /[\p{L}\p{N}_$]*$/u;
let count = 0;

/** @param {Suggestion} item @param {string} typed in lower case */
const fits = ({ label, insert }, typed) => {
  const name = label.toLowerCase();
  return name.startsWith(typed) || insert.toLowerCase().startsWith(typed) ||
    (typed.length > 1 && name.includes(typed));
};

/** @param {import("./editor.js").Editor} editor
 * @param {(statement: string, at: number, signal: AbortSignal) => Promise<Suggestions>} ask */
export function completion(editor, ask) {
  const id = `suggestions-${(count += 1)}`;
  const open = signal(/** @type {Open | null} */ (null));
  const at = signal(0);
  let asked = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  // What still fits while the next answer is on its way.
  const shown = computed(() => {
    if (!open.value) return [];
    const typed = editor.text.value.slice(open.value.from, editor.selection.value.to).toLowerCase();
    return open.value.items.filter((item) => fits(item, typed));
  });
  const chosen = computed(() => (shown.value.length ? Math.min(at.value, shown.value.length - 1) : -1));
  /** @param {number} index */
  const optionId = (index) => `${id}-${index}`;

  const close = () => {
    clearTimeout(timer);
    asked.abort();
    open.value = null;
  };

  /** @param {boolean} wanted whether the person asked for it */
  const request = async (wanted) => {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const caret = editor.selection.peek().to;
    const text = editor.text.peek();
    const [from, to] = editor.lines.around(caret);
    try {
      const found = await ask(text.slice(from, to), caret - from, signal);
      if (signal.aborted || editor.text.peek() !== text || editor.selection.peek().to !== caret) return;
      show({ from: from + found.from, to: from + found.to, items: found.items }, wanted);
    } catch (error) {
      if (signal.aborted) return;
      close();
      if (wanted) say(errorText(error));
    }
  };

  /** @param {Open} found @param {boolean} wanted */
  const show = (found, wanted) => {
    const typed = editor.text.peek().slice(found.from, found.to).toLowerCase();
    const complete = !wanted && found.items.some(({ label }) => label.toLowerCase() === typed);
    if (!found.items.length || complete) {
      close();
      if (wanted) tell("No suggestions.");
      return;
    }
    const before = open.peek();
    if (!before || before.from !== found.from) {
      at.value = 0;
      say(`${counted(found.items.length, "suggestion")}.`);
    }
    open.value = found;
  };

  /** @param {Suggestion | undefined} item */
  const accept = (item) => {
    const place = open.peek();
    if (!item || !place) return;
    const to = Math.max(editor.selection.peek().to, place.from);
    close();
    editor.replace({ from: place.from, to }, item.insert);
    if (item.insert.endsWith(".")) void request(false);
  };

  editor.typed.push((typed) => {
    clearTimeout(timer);
    const caret = editor.selection.peek().to;
    const before = editor.text.peek().slice(Math.max(0, caret - 80), caret);
    const kind = editor.lines.kindBefore(caret);
    const inText = kind === "string" || kind === "comment" || kind === "number";
    const asks = typed === "." || (typed === " " && /\b(?:join|on) $/i.test(before)) || (/^[\p{L}\p{N}_]*[\p{L}_]$/u.test(typed) && (WORD.exec(before)?.[0].length ?? 0) > 0);
    if (typed && asks && !inText) {
      timer = setTimeout(() => void request(false), WAIT_MS);
      if (typed === ".") open.value = null;
    } else if (!open.peek() || !/[\p{N}]$/u.test(typed)) close();
  });

  editor.keys.push((event) => {
    if (event.key === " " && event.ctrlKey) {
      void request(true);
      return true;
    }
    if (["Control", "Shift", "Alt", "Meta"].includes(event.key)) return false;
    const list = shown.peek();
    if (!list.length || event.ctrlKey || event.altKey || event.metaKey) {
      // What is on its way is not wanted any more: the statement runs, or the caret goes elsewhere.
      if (event.key.length > 1 || event.ctrlKey || event.metaKey) close();
      return false;
    }
    const last = list.length - 1;
    const now = chosen.peek();
    const next = {
      ArrowDown: now === last ? 0 : now + 1, ArrowUp: now === 0 ? last : now - 1,
      PageDown: Math.min(last, now + 8), PageUp: Math.max(0, now - 8),
    }[event.key];
    if (next !== undefined) at.value = next;
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) accept(list[now]);
    else if (event.key === "Escape") close();
    else {
      if (/^(Arrow(Left|Right)|Home|End)$/.test(event.key)) close();
      return false;
    }
    return true;
  });
  editor.area.addEventListener("blur", close);
  editor.area.addEventListener("scroll", () => open.peek() && close());
  onEnd(close);

  const list = h("ul", { class: "suggestions", role: "listbox", id, "aria-label": "Suggestions" },
    each(() => shown.value.map((item, index) => ({ item, index })), ({ item, index }) => `${index} ${item.kind} ${item.label} ${item.detail}`,
      (entry) => {
        const { item, index } = entry.peek();
        return h("li", {
          role: "option", id: optionId(index), "aria-selected": () => String(chosen.value === index),
          // The focus stays in the text.
          onmousedown: (/** @type {Event} */ event) => event.preventDefault(),
          onclick: () => accept(entry.peek().item),
        },
          h("span", { class: `kind s-${item.kind.replace(/[^a-z]/g, "")}`, "aria-hidden": "true" }, item.kind.slice(0, 1).toUpperCase()),
          isolated(item.label), h("span", { class: "sr" }, `, ${item.kind}`),
          item.detail ? h("span", { class: "detail" }, isolated(item.detail)) : null);
      }));
  const node = h("div", { class: "suggestions-place", hidden: () => !shown.value.length }, list);
  effect(() => {
    const isOpen = shown.value.length > 0;
    const { area } = editor;
    if (isOpen) {
      area.setAttribute("aria-controls", id);
      area.setAttribute("aria-activedescendant", optionId(chosen.value));
    } else {
      area.removeAttribute("aria-controls");
      area.removeAttribute("aria-activedescendant");
    }
    if (isOpen && open.value) place(node, editor, open.value.from);
    document.getElementById(optionId(chosen.value))?.scrollIntoView({ block: "nearest" });
  });
  return node;
}

/** Under the word, or above it where there is more room; inside the window.
 * @param {HTMLElement} node @param {import("./editor.js").Editor} editor @param {number} offset */
function place(node, editor, offset) {
  const { left, top, bottom } = editor.pointOf(offset);
  const box = editor.box.getBoundingClientRect();
  const width = Math.min(420, innerWidth - 16);
  const x = Math.max(8, Math.min(box.left + left - 8, innerWidth - width - 8));
  const below = innerHeight - box.top - bottom;
  const above = box.top + top;
  const under = below >= 180 || below >= above;
  node.style.left = `${x}px`;
  node.style.width = `${width}px`;
  node.style.maxHeight = `${Math.max(80, Math.min(280, (under ? below : above) - 12))}px`;
  node.style.top = under ? `${box.top + bottom + 2}px` : "auto";
  node.style.bottom = under ? "auto" : `${innerHeight - box.top - top + 2}px`;
}
