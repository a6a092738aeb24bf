/** A tab that is a transcript: lines in the source's own language, each of which passes the gate. */

import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { each, h, loadStyle } from "./dom.js";
import { effect } from "./signals.js";
import { terminalOf } from "./terminal_state.js";
import { isWhole } from "./terminal_words.js";
import { visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./terminal_state.js").Entry} Entry */

/** @param {import("./signals.js").Signal<DataTab>} tab */
export function terminalTab(tab) {
  void loadStyle("terminal.css");
  const state = terminalOf(tab.peek());
  const { id, source } = tab.peek();
  const log = h("div", { class: "terminal-log", role: "log", tabindex: "0", "aria-label": `Transcript of ${source}` },
    each(() => state.entries.value, ({ key }) => String(key), entryView));
  const input = line(state, `line-${id}`);
  effect(() => {
    void state.entries.value;
    requestAnimationFrame(() => (log.scrollTop = log.scrollHeight));
  });
  // What is typed as soon as the tab is there is for the line.
  queueMicrotask(() => document.activeElement?.id === `panel-${id}` && input.focus());
  return h("div", { class: "terminal" },
    h("h2", { class: "sr" }, "Terminal of ", visible(source)),
    log,
    h("form", { class: "terminal-line", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      h("label", { class: "terminal-prompt", for: `line-${id}` }, () => state.prompt), input),
    h("footer", { class: "status-line" },
      () => sourceChip(data.source(source)),
      h("span", { role: "status" }, () => (state.asking.value ? "Waits for a yes in the Inbox" : state.running.value ? "Running …" : "Ready")),
      () => (state.running.value ? h("button", { class: "small quiet", onclick: () => void state.cancel() }, "Cancel") : null),
      () => (state.asking.value ? h("a", { href: `#/inbox/${encodeURIComponent(state.asking.value)}` }, "To the question") : null),
      () => (state.block.value ? h("span", { class: `terminal-block ${state.left.value < 30 ? "soon" : ""}` },
        state.block.value.failed ? "Transaction, failed" : "Transaction", state.block.value.readsOnly ? ", read only" : "",
        `: rolled back if idle for ${state.left.value} s`) : null)));
}

/** @param {import("./signals.js").Signal<Entry>} entry */
function entryView(entry) {
  const { kind, prompt, text } = entry.peek();
  if (kind === "asked") {
    return h("pre", { class: "entry asked" }, h("span", { class: "terminal-prompt" }, visible(prompt), " "), visible(text));
  }
  if (kind === "waits") return h("p", { class: "entry waits" }, visible(text), " ", h("a", { href: "#/inbox" }, "To the Inbox"));
  return h("pre", { class: `entry ${kind}` }, visible(text));
}

/** The line that is written, and what the arrows bring back. @param {ReturnType<typeof terminalOf>} state @param {string} id */
function line(state, id) {
  let at = -1;
  let draft = "";
  const area = h("textarea", {
    class: "terminal-input", id, rows: "1", spellcheck: "false", autocomplete: "off", autocapitalize: "off", dir: "ltr",
    "aria-keyshortcuts": "Enter Shift+Enter ArrowUp ArrowDown Control+L Control+C", value: state.draft,
    oninput: () => {
      at = -1;
      grow();
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => press(event),
  });
  const grow = () => {
    area.rows = Math.min(12, area.value.split("\n").length);
    state.draft = area.value;
  };
  /** @param {string} text */
  const put = (text) => {
    area.value = text;
    grow();
    area.setSelectionRange(text.length, text.length);
  };
  /** @param {number} by */
  const recall = (by) => {
    const { history } = state;
    if (at < 0) {
      if (by > 0 || !history.length) return;
      draft = area.value;
      at = history.length;
    }
    at = Math.max(0, at + by);
    if (at < history.length) put(history[at]);
    else {
      at = -1;
      put(draft);
    }
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.isComposing || event.altKey || event.metaKey) return;
    const before = area.value.slice(0, area.selectionStart);
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey) {
      if (state.running.peek() || !isWhole(area.value, state.speaksSql)) {
        if (state.running.peek()) event.preventDefault();
        else setTimeout(grow);
        return;
      }
      event.preventDefault();
      const text = area.value;
      at = -1;
      put("");
      void state.send(text);
      return;
    }
    if (event.key === "Enter" && event.ctrlKey) {
      const text = area.value;
      if (!state.running.peek()) {
        put("");
        void state.send(text);
      }
    } else if (event.key === "ArrowUp" && !event.shiftKey && !before.includes("\n")) recall(-1);
    else if (event.key === "ArrowDown" && !event.shiftKey && !area.value.slice(area.selectionEnd).includes("\n") && at >= 0) recall(1);
    else if (event.ctrlKey && event.key.toLowerCase() === "l") state.clear();
    else if (event.ctrlKey && event.key.toLowerCase() === "c" && area.selectionStart === area.selectionEnd) {
      if (state.running.peek()) void state.cancel();
      else put("");
    } else return;
    event.preventDefault();
  };
  grow();
  return area;
}
