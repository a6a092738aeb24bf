/**
 * The editor: a text area with its colours on a layer above it. What is typed, selected, undone,
 * composed and read out is the text area's own; the layer only shows the lines in sight, and takes
 * no clicks. No line wraps, so that a line's place is known from its number.
 */

import { h } from "./dom.js";
import { commentMark, lexerOf } from "./lexer.js";
import { onEnd, signal } from "./signals.js";
import { tell } from "./state.js";
import { TextLines } from "./text_lines.js";

/** @typedef {import("./text_lines.js").Line} Line */
/** @typedef {{ from: number, to: number, kind: string }} Mark */
/** @typedef {{ from: number, to: number }} Range */

const INDENT = "  ";
const PADDING = 8;
// Longer lines are shown without colours.
const LONGEST_LINE = 5_000;

export class Editor {
  /** The text as it is now. */
  text = signal("");
  /** The selection; an empty one is the caret. */
  selection = signal(/** @type {Range} */ ({ from: 0, to: 0 }));
  /** Marks that others set: errors, hidden characters. */
  marks = signal(/** @type {Mark[]} */ ([]));
  /** What a search has found. */
  finds = signal(/** @type {Range[]} */ ([]));
  /** The lines of the statement that would run. */
  current = signal(/** @type {Range | null} */ (null));
  /** Whether the next Tab leaves the editor. */
  leaving = signal(false);
  /** Keys that come first; true takes the key. @type {((event: KeyboardEvent) => boolean)[]} */
  keys = [];
  /** Called after each input with what was typed, "" if it was something else.
   * @type {((typed: string) => void)[]} */
  typed = [];
  lines;
  #language;
  /** @type {WeakMap<Line, { node: HTMLElement, key: string }>} */
  #drawn = new WeakMap();
  #lineHeight = 20;

  /** @param {{ label: string, language: string, dialect: string, describedBy: string }} options */
  constructor({ label, language, dialect, describedBy }) {
    this.#language = language;
    this.lines = new TextLines(lexerOf(language, dialect));
    this.area = h("textarea", {
      class: "code", "aria-label": label, "aria-describedby": describedBy, "aria-autocomplete": "list",
      spellcheck: "false", autocomplete: "off", autocapitalize: "off", autocorrect: "off",
      translate: "no", wrap: "off", dir: "ltr", rows: "1",
      oninput: (/** @type {Event} */ event) => this.#input(/** @type {InputEvent} */ (event)),
      onscroll: () => this.draw(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#press(event),
      onfocus: () => this.look(), onblur: () => (this.leaving.value = false),
      oncompositionstart: () => this.node.classList.add("composing"),
      oncompositionend: () => (this.node.classList.remove("composing"), this.#changed()),
    });
    this.layer = h("div", { class: "layer", "aria-hidden": "true", translate: "no" });
    this.numbers = h("div", { class: "numbers" });
    this.#view = h("div", { class: "code-view" }, this.layer);
    this.#gutter = h("div", { class: "gutter", "aria-hidden": "true" }, this.numbers);
    this.box = h("div", { class: "code-box" }, this.area, this.#view);
    this.node = h("div", { class: "editor" }, this.#gutter, this.box);
    const look = () => document.activeElement === this.area && this.look();
    document.addEventListener("selectionchange", look);
    const size = new ResizeObserver(() => this.#measure());
    size.observe(this.box);
    onEnd(() => {
      document.removeEventListener("selectionchange", look);
      size.disconnect();
    });
  }

  #view;
  #gutter;

  /** Another text in place of this one, without a way back by the keys. @param {string} text */
  reset(text) {
    if (text === this.area.value) return;
    const { selectionStart, scrollTop } = this.area;
    this.area.value = text;
    this.area.selectionStart = this.area.selectionEnd = Math.min(selectionStart, this.area.value.length);
    this.area.scrollTop = scrollTop;
    this.#changed();
  }

  /** Put text in place of a range, as if it was typed: it can be undone.
   * @param {Range} range @param {string} text @param {Range} [select] afterwards */
  replace({ from, to }, text, select) {
    const { area } = this;
    area.focus();
    area.setSelectionRange(from, to);
    // There is no other way that keeps the text area's own undo.
    const done = text ? document.execCommand("insertText", false, text) : from === to || document.execCommand("delete");
    if (!done) area.setRangeText(text, from, to, "end");
    if (select) area.setSelectionRange(select.from, select.to);
    this.#changed();
  }

  /** Put the caret somewhere, and bring it into sight. @param {number} from @param {number} [to] */
  reveal(from, to = from) {
    const { area } = this;
    area.focus({ preventScroll: true });
    area.setSelectionRange(from, to);
    this.look();
    const top = this.lines.lineAt(from) * this.#lineHeight;
    if (top < area.scrollTop || top + 2 * this.#lineHeight > area.scrollTop + area.clientHeight) {
      area.scrollTop = Math.max(0, top - area.clientHeight / 3);
    }
    this.draw();
  }

  /** Colours of the server, if they are for this very text. @param {[string, string][] | null} spans */
  serve(spans) {
    if (spans && this.lines.serve(spans)) this.draw();
  }

  /** Where a character is, within the box. @param {number} offset */
  pointOf(offset) {
    const index = this.lines.lineAt(offset);
    const line = this.lines.lines[index];
    const box = this.box.getBoundingClientRect();
    const node = this.#drawn.get(line)?.node;
    let left = PADDING - this.area.scrollLeft;
    if (node?.isConnected) {
      const range = document.createRange();
      let column = offset - this.lines.starts[index];
      const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        const length = text.nodeValue?.length ?? 0;
        if (column > length) {
          column -= length;
          continue;
        }
        range.setStart(text, column);
        left = range.getBoundingClientRect().left - box.left;
        break;
      }
    }
    const top = PADDING + index * this.#lineHeight - this.area.scrollTop;
    return { left, top, bottom: top + this.#lineHeight };
  }

  #measure() {
    if (!this.area.isConnected) return;
    this.#lineHeight = parseFloat(getComputedStyle(this.area).lineHeight) || 20;
    this.draw();
  }

  /** @param {InputEvent} event */
  #input(event) {
    this.#changed();
    if (event.isComposing) return;
    const typed = event.inputType === "insertText" ? event.data ?? "" : "";
    for (const take of this.typed) take(typed);
  }

  #changed() {
    const text = this.area.value;
    this.lines.update(text);
    this.look();
    this.text.value = text;
    this.draw();
  }

  /** Where the caret is now: the browser reports it only a moment later. */
  look() {
    const { selectionStart: from, selectionEnd: to } = this.area;
    const old = this.selection.peek();
    if (old.from === from && old.to === to) return;
    this.selection.value = { from, to };
    this.draw();
  }

  // Keys

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (event.isComposing) return;
    this.look();
    if (this.keys.some((take) => take(event))) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Escape") {
      this.leaving.value = true;
      tell("Tab leaves the editor now.");
    } else if (event.key === "Tab" && !control && !event.altKey) {
      if (this.leaving.peek()) return;
      event.preventDefault();
      this.#indent(event.shiftKey);
    } else if (event.key === "/" && control) {
      event.preventDefault();
      this.#comment();
    } else if (event.key === "Enter" && !control && !event.altKey && !event.shiftKey) {
      this.#breakLine(event);
    }
    if (!["Escape", "Tab", "Shift", "Control", "Alt", "Meta"].includes(event.key)) this.leaving.value = false;
  }

  /** The lines of the selection, whole. */
  #selectedLines() {
    const { from, to } = this.selection.peek();
    const first = this.lines.lineAt(from);
    let last = this.lines.lineAt(to);
    if (last > first && this.lines.starts[last] === to) last -= 1;
    const start = this.lines.starts[first];
    return {
      start, end: this.lines.starts[last] + this.lines.lines[last].text.length,
      texts: this.lines.lines.slice(first, last + 1).map(({ text }) => text),
    };
  }

  /** @param {boolean} back */
  #indent(back) {
    const { from, to } = this.selection.peek();
    const { start, end, texts } = this.#selectedLines();
    if (!back && texts.length === 1) {
      const column = from - start;
      this.replace({ from, to }, INDENT.slice(column % INDENT.length));
      return;
    }
    const changed = texts.map((text) => (back ? text.replace(/^(?: {1,2}|\t)/, "") : text && INDENT + text));
    this.#replaceLines({ start, end, texts }, changed);
  }

  #comment() {
    const lines = this.#selectedLines();
    const mark = commentMark(this.#language);
    const bare = mark.trimEnd();
    const filled = lines.texts.filter((text) => text.trim());
    const all = filled.length > 0 && filled.every((text) => text.trimStart().startsWith(bare));
    const indent = Math.min(...filled.map((text) => text.length - text.trimStart().length), 1e9);
    const column = filled.length ? indent : 0;
    this.#replaceLines(lines, lines.texts.map((text) => {
      if (!text.trim() && lines.texts.length > 1) return text;
      if (!all) return text.slice(0, column) + mark + text.slice(column);
      const at = text.indexOf(bare);
      const after = text.slice(at + bare.length);
      return text.slice(0, at) + (after.startsWith(" ") ? after.slice(1) : after);
    }));
  }

  /** @param {{ start: number, end: number, texts: string[] }} lines @param {string[]} changed */
  #replaceLines({ start, end, texts }, changed) {
    const text = changed.join("\n");
    if (text === texts.join("\n")) return;
    const { from, to } = this.selection.peek();
    if (texts.length > 1) {
      this.replace({ from: start, to: end }, text, { from: start, to: start + text.length });
      return;
    }
    const moved = text.length - texts[0].length;
    /** @param {number} at */
    const shift = (at) => Math.max(start, at + moved);
    this.replace({ from: start, to: end }, text, { from: shift(from), to: shift(to) });
  }

  /** A new line begins where the last one did. @param {KeyboardEvent} event */
  #breakLine(event) {
    const { from, to } = this.selection.peek();
    const line = this.lines.lineAt(from);
    const before = this.lines.lines[line].text.slice(0, from - this.lines.starts[line]);
    const indent = /^[ \t]*/.exec(before)?.[0] ?? "";
    if (!indent) return;
    event.preventDefault();
    this.replace({ from, to }, `\n${indent}`);
    this.reveal(this.area.selectionStart);
  }

  // The layer

  draw() {
    const { area, lines } = this;
    if (!area.isConnected) return;
    const height = this.#lineHeight;
    const first = Math.max(0, Math.floor((area.scrollTop - PADDING) / height));
    const last = Math.min(lines.lines.length, Math.ceil((area.scrollTop + area.clientHeight) / height) + 1);
    this.#view.style.width = `${area.clientWidth}px`;
    this.#view.style.height = `${area.clientHeight}px`;
    const top = PADDING + first * height - area.scrollTop;
    this.layer.style.transform = `translate(${PADDING - area.scrollLeft}px, ${top}px)`;
    this.numbers.style.transform = `translateY(${top}px)`;
    this.#gutter.style.width = `${Math.max(2, String(lines.lines.length).length) + 2}ch`;
    const [begin, end] = [lines.starts[first] ?? 0, lines.starts[last] ?? lines.text.length + 1];
    const marks = this.#allMarks().filter(({ from, to }) => to >= begin && from <= end);
    const shown = [];
    for (let index = first; index < last; index += 1) shown.push(this.#lineNode(index, marks));
    keep(this.layer, shown);
    this.#drawNumbers(first, last);
  }

  #allMarks() {
    const marks = [...this.marks.peek()];
    const { from, to } = this.selection.peek();
    const pair = from === to ? this.lines.brackets(from) : null;
    for (const place of this.finds.peek()) marks.push({ ...place, kind: place.from === from && place.to === to ? "found" : "find" });
    for (const at of pair ?? []) marks.push({ from: at, to: at + 1, kind: "bracket" });
    return marks;
  }

  /** @param {number} first @param {number} last */
  #drawNumbers(first, last) {
    const caret = this.lines.lineAt(this.selection.peek().to);
    const current = this.current.peek();
    const [begin, end] = current ? [this.lines.lineAt(current.from), this.lines.lineAt(current.to)] : [-1, -1];
    const wrong = new Set(this.marks.peek().filter(({ kind }) => kind === "error").map(({ from }) => this.lines.lineAt(from)));
    for (let index = first; index < last; index += 1) {
      let node = /** @type {HTMLElement | undefined} */ (this.numbers.children[index - first]);
      if (!node) this.numbers.append((node = h("div")));
      const kinds = [index === caret ? "at" : "", index >= begin && index <= end ? "runs" : "", wrong.has(index) ? "wrong" : ""];
      const kind = kinds.filter(Boolean).join(" ");
      if (node.className !== kind) node.className = kind;
      const text = String(index + 1);
      if (node.textContent !== text) node.textContent = text;
    }
    while (this.numbers.children.length > last - first) this.numbers.lastChild?.remove();
  }

  /** @param {number} index @param {Mark[]} marks */
  #lineNode(index, marks) {
    const line = this.lines.lines[index];
    const start = this.lines.starts[index];
    const here = marks
      .map(({ from, to, kind }) => ({ from: Math.max(0, from - start), to: Math.min(line.text.length, to - start), kind }))
      .filter(({ from, to }) => from < to).sort((one, other) => one.from - other.from);
    const tokens = line.text.length > LONGEST_LINE ? /** @type {[string, string][]} */ ([["name", line.text]]) : this.lines.tokensOf(index);
    const key = here.map(({ from, to, kind }) => `${kind}${from}-${to}`).join(" ") + (line.served === tokens ? "s" : "g");
    const drawn = this.#drawn.get(line);
    if (drawn?.key === key && drawn.node.dataset.state === line.state) return drawn.node;
    const node = h("div", { class: "code-line", "data-state": line.state }, coloured(tokens, here));
    this.#drawn.set(line, { node, key });
    return node;
  }
}

/** @param {[string, string][]} tokens @param {Mark[]} marks in order */
function coloured(tokens, marks) {
  const parts = /** @type {Node[]} */ ([]);
  const cuts = [...new Set(marks.flatMap(({ from, to }) => [from, to]))].sort((one, other) => one - other);
  let at = 0;
  for (const [kind, text] of tokens) {
    const end = at + text.length;
    let from = at;
    for (const cut of [...cuts.filter((each) => each > at && each < end), end]) {
      const names = marks.filter((mark) => mark.from <= from && mark.to >= cut).map((mark) => `m-${mark.kind}`);
      if (/^(keyword|string|number|comment|parameter|mark)$/.test(kind)) names.unshift(`h-${kind}`);
      const piece = text.slice(from - at, cut - at);
      parts.push(names.length ? h("span", { class: names.join(" ") }, piece) : document.createTextNode(piece));
      from = cut;
    }
    at = end;
  }
  return parts;
}

/** Make these the children; those that stay are not moved. @param {HTMLElement} parent @param {Node[]} nodes */
function keep(parent, nodes) {
  const wanted = new Set(nodes);
  for (const old of [...parent.childNodes]) if (!wanted.has(old)) old.remove();
  nodes.forEach((node, index) => {
    if (parent.childNodes[index] !== node) parent.insertBefore(node, parent.childNodes[index] ?? null);
  });
}
