/** Find and replace in the text of a query tab. What is replaced is typed, so it can be undone. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { say, tell } from "./state.js";
import { number } from "./text.js";

/** @typedef {import("./editor.js").Range} Range */
/** @typedef {{ exact: boolean, words: boolean }} How */

const MOST = 10_000;
const PART_OF_WORD = /[\p{L}\p{N}_$]/u;

/** All places of a text, from the first on. @param {string} text @param {string} wanted @param {How} how
 * @returns {Range[]} */
export function findAll(text, wanted, { exact, words }) {
  const found = /** @type {Range[]} */ ([]);
  if (!wanted) return found;
  // Folding letter by letter keeps each place: "İ" in small letters is two.
  const fold = (/** @type {string} */ each) => (exact ? each : [...each].map((letter) => {
    const small = letter.toLowerCase();
    return small.length === letter.length ? small : letter;
  }).join(""));
  const [where, what] = [fold(text), fold(wanted)];
  for (let at = where.indexOf(what); at >= 0 && found.length < MOST; at = where.indexOf(what, at)) {
    const to = at + what.length;
    const whole = !words || !((PART_OF_WORD.test(text[at - 1] ?? "") && PART_OF_WORD.test(text[at])) ||
      (PART_OF_WORD.test(text[to] ?? "") && PART_OF_WORD.test(text[to - 1])));
    if (whole) found.push({ from: at, to });
    at = whole ? to : at + 1;
  }
  return found;
}

/** The text with all places replaced. @param {string} text @param {Range[]} places @param {string} by */
export function replaceAll(text, places, by) {
  let [result, at] = ["", 0];
  for (const { from, to } of places) {
    result += text.slice(at, from) + by;
    at = to;
  }
  return result + text.slice(at);
}

/** The bar over the text. @param {import("./editor.js").Editor} editor @param {() => void} leave */
export function findBar(editor, leave) {
  const wanted = signal("");
  const by = signal("");
  const how = signal(/** @type {How} */ ({ exact: false, words: false }));
  const replacing = signal(false);
  const places = computed(() => findAll(editor.text.value, wanted.value, how.value));
  /** Where the selection is one of them, from 1; 0 if it is none. */
  const at = computed(() => {
    const { from, to } = editor.selection.value;
    return places.value.findIndex((place) => place.from === from && place.to === to) + 1;
  });
  effect(() => {
    editor.finds.value = places.value;
    editor.draw();
  });
  onEnd(() => {
    editor.finds.value = [];
    editor.draw();
  });
  /** Select a place without taking the focus out of the field. @param {Range | undefined} place */
  const show = (place) => {
    if (!place) {
      if (wanted.peek()) tell("Not found.");
      return;
    }
    const field = document.activeElement;
    editor.reveal(place.from, place.to);
    if (field instanceof HTMLElement && bar.contains(field)) field.focus({ preventScroll: true });
    say(`${at.peek()} of ${places.peek().length}`);
  };
  const next = () => {
    const { to, from } = editor.selection.peek();
    const all = places.peek();
    show(all.find((place) => place.from >= (at.peek() ? to : from)) ?? all[0]);
  };
  const previous = () => {
    const { from } = editor.selection.peek();
    const all = places.peek();
    show(all.findLast((place) => place.to <= from) ?? all.at(-1));
  };
  const one = () => {
    const place = places.peek()[at.peek() - 1];
    if (!place) {
      next();
      return;
    }
    const field = document.activeElement;
    editor.replace(place, by.peek(), { from: place.from + by.peek().length, to: place.from + by.peek().length });
    if (field instanceof HTMLElement) field.focus({ preventScroll: true });
    next();
  };
  const all = () => {
    const found = places.peek();
    const last = found.at(-1);
    if (!last) return;
    const field = document.activeElement;
    const { from } = found[0];
    const moved = found.map((place) => ({ from: place.from - from, to: place.to - from }));
    const text = replaceAll(editor.text.peek().slice(from, last.to), moved, by.peek());
    editor.replace({ from, to: last.to }, text, { from, to: from + text.length });
    if (field instanceof HTMLElement) field.focus({ preventScroll: true });
    say(`${number(found.length)} replaced.`);
  };
  /** @param {string} name @param {import("./signals.js").Signal<string>} value @param {() => void} onEnter */
  const field = (name, value, onEnter) => h("input", {
    type: "text", "aria-label": name, placeholder: name, spellcheck: "false", autocomplete: "off", dir: "auto",
    oninput: (/** @type {Event} */ event) => (value.value = /** @type {HTMLInputElement} */ (event.target).value),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.shiftKey) previous();
      else onEnter();
    },
  });
  /** @param {string} label @param {keyof How} name */
  const toggle = (label, name) => h("button", {
    type: "button", class: "small", "aria-pressed": () => String(how.value[name]),
    onclick: () => (how.value = { ...how.peek(), [name]: !how.peek()[name] }),
  }, label);
  const find = field("Find", wanted, next);
  const replace = field("Replace by", by, one);
  const bar = h("div", {
    class: "find-bar", role: "search", "aria-label": "Find in the text",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") leave();
      else if (event.key === "F3") (event.shiftKey ? previous : next)();
      else if (event.key.toLowerCase() === "h" && event.ctrlKey && !event.shiftKey) open(true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  },
    h("div", { class: "find-line" }, find,
      h("span", { class: "find-count", role: "status" }, () => (!wanted.value ? ""
        : !places.value.length ? "Not found"
          : `${at.value ? `${number(at.value)} of ` : ""}${number(places.value.length)}${places.value.length === MOST ? " or more" : ""}`)),
      h("button", { type: "button", class: "small", title: "Shift Enter", onclick: previous }, "Previous"),
      h("button", { type: "button", class: "small", title: "Enter", onclick: next }, "Next"),
      toggle("Case", "exact"), toggle("Words", "words"),
      h("button", { type: "button", class: "small", "aria-expanded": () => String(replacing.value),
        onclick: () => (replacing.value ? (replacing.value = false) : open(true)) }, "Replace"),
      h("button", { type: "button", class: "small quiet", "aria-label": "Close", title: "Escape", onclick: leave }, icon("close"))),
    h("div", { class: "find-line", hidden: () => !replacing.value }, replace,
      h("button", { type: "button", class: "small", onclick: one }, "Replace this"),
      h("button", { type: "button", class: "small", onclick: all }, "Replace all")));
  /** Begin with what is selected. @param {boolean} withReplace */
  const open = (withReplace) => {
    if (withReplace) replacing.value = true;
    const { from, to } = editor.selection.peek();
    const chosen = editor.text.peek().slice(from, to);
    if (chosen && !chosen.includes("\n") && !bar.contains(document.activeElement)) {
      find.value = chosen;
      wanted.value = chosen;
    }
    (withReplace && wanted.peek() ? replace : find).focus();
    (withReplace && wanted.peek() ? replace : find).select();
  };
  return { node: bar, open, next, previous };
}
