/** What each may do: a caller on every source, or every caller on a source, by verb, with the rule
 * that decides each cell; and whether one statement would run. */

import { errorText, get, post, query } from "./api.js";
import { sourceChip } from "./card.js";
import { h, keyed } from "./dom.js";
import { icon } from "./icons.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { go, listen, route, say, session } from "./state.js";
import { tableBox } from "./rows.js";
import { cell, counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./access_contract.js").Asked} Asked */
/** @typedef {import("./access_contract.js").Caller} Caller */
/** @typedef {import("./access_contract.js").CellDetail} CellDetail */
/** @typedef {import("./access_contract.js").Choices} Choices */
/** @typedef {import("./access_contract.js").Matrix} Matrix */
/** @typedef {import("./access_contract.js").MatrixCell} MatrixCell */
/** @typedef {import("./access_contract.js").MatrixRow} MatrixRow */
/** @typedef {import("./access_contract.js").Preview} Preview */
/** @typedef {import("./access_contract.js").Setting} Setting */

const ROWS = 50;
const TYPING_MS = 250;
const GROUPS = /** @type {[Caller["kind"], string][]} */ ([
  ["request", "Clients that ask"], ["token", "Tokens"], ["operator", "Operators"], ["other", "Without a token"],
]);
const WORDS = { allow: "allowed", masked: "masked", ask: "asks", deny: "no" };
const KINDS = { token: "token", operator: "operator", request: "asks for a token", other: "no token" };

/** The address of this view with some of its parts changed. @param {Record<string, string>} changes */
function address(changes) {
  const now = Object.fromEntries(route.peek().query);
  const text = query({ ...now, ...changes });
  return `#/access/may${text ? `?${text}` : ""}`;
}

export function matrixView() {
  const choices = signal(/** @type {Choices | null} */ (null));
  const error = signal("");
  const page = signal(/** @type {Matrix | null} */ (null));
  const loading = signal(false);
  const given = computed(() => (route.value.id === "may" ? route.value.query : new URLSearchParams()));
  /** @param {string} name */
  const part = (name) => given.value.get(name) ?? "";
  let latest = 0;

  const load = async () => {
    const mine = (latest += 1);
    const [caller, source] = [part("caller"), part("source")];
    if (!caller && !source) return;
    loading.value = true;
    try {
      const found = await get(`access/matrix?${query({
        ...(source ? { source } : { caller }), q: part("q"), after: part("after"), limit: ROWS,
      })}`);
      if (mine !== latest) return;
      page.value = found;
      error.value = "";
    } catch (caught) {
      if (mine !== latest) return;
      page.value = null;
      error.value = errorText(caught);
    } finally {
      if (mine === latest) loading.value = false;
    }
  };
  const begin = async () => {
    try {
      choices.value = await get("access/choices");
    } catch (caught) {
      error.value = errorText(caught);
      return;
    }
    if (!part("caller") && !part("source")) {
      const first = choices.peek()?.callers[0];
      if (first) go(address({ caller: first.id }), { replace: true });
    }
  };
  const shown = computed(() => ["caller", "source", "q", "after"].map(part).join("\n"));
  effect(() => {
    void shown.value;
    void load();
  });
  onEnd(listen("refreshed", () => void begin().then(load)));
  void begin();
  const cell = computed(() => part("cell"));
  return h("div", { class: () => `split matrix ${cell.value ? "has-panel" : ""}` },
    h("div", { class: "matrix-place" },
      keyed(() => choices.value !== null, () => (choices.peek() ? controls(/** @type {Choices} */ (choices.peek()), part) : null)),
      () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
      () => (page.value && choices.value
        ? [table(page.value, choices.value, part), pages(page.value, part)]
        : error.value ? null : h("p", { class: "note" }, "Loading …"))),
    keyed(() => cell.value, () => (cell.peek() ? panel(cell.peek(), part, choices) : null)));
}

/** @param {Choices} choices @param {(name: string) => string} part */
function controls(choices, part) {
  const bySource = Boolean(part("source"));
  const how = h("select", { id: "how", onchange: () => {
    if (how.value === "source") go(address({ source: administered()[0] ?? "", caller: "", after: "", cell: "" }));
    else go(address({ source: "", caller: choices.callers[0]?.id ?? "", after: "", cell: "" }));
  } }, [["caller", "One caller, each source"], ["source", "One source, each caller"]].map(([value, label]) =>
    h("option", { value, selected: (value === "source") === bySource }, label)));
  const who = h("select", { id: "who", onchange: () =>
    go(address({ caller: who.value, source: "", after: "", cell: "" })) },
  GROUPS.map(([kind, label]) => {
    const found = choices.callers.filter((caller) => caller.kind === kind);
    return found.length ? h("optgroup", { label }, found.map((caller) =>
      h("option", { value: caller.id }, `${caller.name} (${caller.scope})`))) : null;
  }));
  const which = h("select", { id: "which", onchange: () =>
    go(address({ source: which.value, caller: "", after: "", cell: "" })) },
  administered().map((name) => h("option", { value: name }, name)));
  let typing = 0;
  const words = h("input", { id: "words", type: "search", value: part("q"), placeholder: "Filter …",
    "aria-label": "Filter by name", autocomplete: "off", spellcheck: "false", oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => go(address({ q: words.value.trim(), after: "" }), { replace: true }), TYPING_MS);
    } });
  effect(() => {
    const [caller, source] = [part("caller"), part("source")];
    how.value = source ? "source" : "caller";
    if (caller) who.value = caller;
    if (source) which.value = source;
  });
  return [
    choices.why_not ? h("p", { class: "note" }, prose(choices.why_not)) : null,
    h("div", { class: "matrix-controls" },
      choices.by_source ? [h("label", { for: "how", class: "sr" }, "Look at"), how] : null,
      h("span", { class: () => (part("source") ? "hidden" : "") }, h("label", { for: "who", class: "sr" }, "Caller"), who),
      h("span", { class: () => (part("source") ? "" : "hidden") }, h("label", { for: "which", class: "sr" }, "Source"), which),
      words),
  ];
}

/** The sources that this operator is an admin of. */
function administered() {
  const now = session.peek();
  if (!now) return [];
  const roles = now.operator.roles.filter(({ role }) => role === "admin");
  const names = now.sources.map(({ name }) => name);
  return names.filter((name) => roles.some(({ sources }) => sources === null || sources.includes(name)));
}

/** @param {Matrix} matrix @param {Choices} choices @param {(name: string) => string} part */
function table(matrix, choices, part) {
  if (!matrix.rows.length) return h("p", { class: "note" }, "Nothing fits.");
  const body = h("tbody", {}, matrix.rows.map((row) => rowOf(row, choices, part)));
  const bySource = Boolean(matrix.rows[0].caller);
  const first = body.querySelector("button");
  first?.setAttribute("tabindex", "0");
  body.addEventListener("keydown", move);
  body.addEventListener("focusin", (event) => {
    const now = /** @type {HTMLElement} */ (event.target).closest("button.verdict");
    if (!now) return;
    body.querySelectorAll('button[tabindex="0"]').forEach((each) => each.setAttribute("tabindex", "-1"));
    now.setAttribute("tabindex", "0");
  });
  return h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "What each may do" },
    h("table", { class: "access-matrix" },
      h("caption", { class: "sr" }, "Arrow keys move from cell to cell; Enter shows what decides."),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, bySource ? "Caller" : "Source"),
        choices.verbs.map((verb) => h("th", { scope: "col", title: verb.kinds.join("; ") }, visible(verb.label))))),
      body));
}

/** @param {KeyboardEvent} event */
function move(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const now = /** @type {HTMLElement} */ (event.target).closest("td");
  const row = now?.parentElement;
  if (!step || !now || !row) return;
  event.preventDefault();
  const column = [...row.children].indexOf(now) + step[1];
  const other = step[0] < 0 ? row.previousElementSibling : step[0] > 0 ? row.nextElementSibling : row;
  /** @type {HTMLElement | null | undefined} */ (other?.children[column]?.querySelector("button"))?.focus();
}

/** @param {MatrixRow} row @param {Choices} choices @param {(name: string) => string} part */
function rowOf(row, choices, part) {
  const name = row.caller?.name ?? row.source?.name ?? "";
  const head = row.caller
    ? [isolated(row.caller.name), h("span", { class: "kind" }, ` ${KINDS[row.caller.kind]}`)]
    : row.source ? sourceChip(row.source) : null;
  const caller = row.caller?.id ?? part("caller");
  const source = row.source?.name ?? part("source");
  return h("tr", {}, h("th", { scope: "row" }, head),
    row.cells ? row.cells.map((cell, index) => {
      const verb = choices.verbs[index];
      const key = JSON.stringify([caller, source, verb.name]);
      return h("td", {}, h("button", {
        class: `verdict v-${cell.kind}`, tabindex: "-1", title: cell.reason,
        "aria-current": () => (part("cell") === key ? "true" : null),
        onclick: () => go(address({ cell: key })),
      }, cell.kind === "deny" ? "no" : cell.kind === "allow" ? icon("check") : null,
      h("span", {}, cell.kind === "deny" ? "" : WORDS[cell.kind]),
      cell.differs ? h("span", { title: "Not all kinds of statements are decided alike" }, "*") : null,
      cell.confirms && cell.kind === "ask" ? h("span", { title: "A phrase of confirmation comes first" }, "!") : null,
      h("span", { class: "sr" }, `: ${name}, ${verb.label}`)));
    }) : h("td", { colspan: String(choices.verbs.length), class: "note" }, visible(row.problem)));
}

/** @param {Matrix} matrix @param {(name: string) => string} part */
function pages(matrix, part) {
  const from = Number(part("after") || 0);
  const last = from + matrix.rows.length;
  return h("div", { class: "pages" },
    h("span", { class: "note" }, matrix.total
      ? `${number(from + 1)} to ${number(last)} of ${number(matrix.total)}` : ""),
    from ? h("button", { class: "small", onclick: () =>
      go(address({ after: from > ROWS ? String(from - ROWS) : "" })) }, "Back") : null,
    matrix.next ? h("button", { class: "small", onclick: () => go(address({ after: String(matrix.next) })) },
      "Next") : null);
}

/** @param {string} key @param {(name: string) => string} part @param {{ value: Choices | null }} choices */
function panel(key, part, choices) {
  const detail = signal(/** @type {CellDetail | null} */ (null));
  const error = signal("");
  let [caller, source, verb] = ["", "", ""];
  try {
    [caller, source, verb] = JSON.parse(key);
  } catch {
    error.value = "The address names no cell.";
  }
  const close = () => {
    go(address({ cell: "" }));
    /** @type {HTMLElement | null} */ (document.querySelector('.access-matrix button[tabindex="0"]'))?.focus();
  };
  if (!error.peek()) {
    get(`access/cell?${query({ caller, source, verb })}`).then((found) => (detail.value = found),
      (caught) => (error.value = errorText(caught)));
  }
  const box = h("aside", {
    class: "panel", "aria-label": "What decides", tabindex: "-1",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      close();
    },
  },
  h("button", { class: "close quiet", onclick: close }, icon("close"), h("span", { class: "sr" }, "Close")),
  () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
  () => (detail.value ? cellView(detail.value) : error.value ? null : h("p", { class: "note" }, "Loading …")),
  error.peek() ? null : askForm(caller, source));
  void choices;
  setTimeout(() => box.focus(), 0);
  return box;
}

/** @param {CellDetail} cell */
function sentence(cell) {
  if (cell.kind === "allow") return "It is allowed.";
  if (cell.kind === "masked") return "It is allowed, and something of the source is hidden.";
  if (cell.kind === "deny") return "It is refused.";
  return cell.confirms ? "It needs a phrase of confirmation, and then a person says yes."
    : "A person says yes first.";
}

/** @param {CellDetail} cell */
const cellView = (cell) => [
  h("h2", {}, isolated(cell.caller.name), " – ", visible(cell.label)),
  h("p", {}, sourceChip(cell.source)),
  h("p", { class: `finding v-${cell.kind}` }, sentence(cell)),
  h("p", {}, prose(cell.reason), " ", h("code", {}, visible(cell.rule))),
  cell.hint && cell.kind === "deny" ? h("p", { class: "note" }, "The advice that the caller gets: ", prose(cell.hint)) : null,
  settingsView(cell.settings),
  cell.kinds.length > 1 ? h("div", {}, h("h3", {}, "By kind of statement"), h("ul", { class: "plain" },
    cell.kinds.map(({ word, kind, reason }) => h("li", { title: reason }, visible(word), ": ",
      h("strong", { class: `v-${kind}` }, WORDS[kind]))))) : null,
  cell.limits.length ? h("div", {}, h("h3", {}, "Within these limits"), h("ul", { class: "plain" },
    cell.limits.map(({ kind, text, kept }) => h("li", {}, `${kind}: `, isolated(text),
      h("span", { class: "note" }, " – ", visible(kept)))))) : null,
  rulesView(cell.rules),
];

/** @param {Setting[]} settings */
const settingsView = (settings) => (settings.length ? h("div", {}, h("h3", {}, "What decides"),
  h("ul", { class: "plain" }, settings.map(({ name, value, kept }) => h("li", {},
    name ? [h("code", {}, visible(name)), " = ", isolated(value)] : null,
    h("span", { class: "note" }, name ? " – " : "", visible(kept)))))) : null);

/** @param {import("./access_contract.js").Finding[]} rules */
const rulesView = (rules) => (rules.length ? h("details", {}, h("summary", {}, "Every rule that was asked"),
  h("ol", { class: "findings" }, rules.map(({ rule, says, found, reason }) => h("li", {},
    visible(says), " ", h("code", {}, visible(rule)), ": ", h("strong", {}, found),
    reason ? h("span", { class: "note" }, " ", prose(reason)) : null)))) : null);

/** @param {string} caller @param {string} source */
function askForm(caller, source) {
  const [asked, error] = [signal(/** @type {Asked | null} */ (null)), signal("")];
  const seen = signal(/** @type {Preview | null} */ (null));
  let turn = 0;
  // An answer is about one statement: what is typed next, or asked next, takes it away.
  const forget = () => {
    turn += 1;
    [error.value, asked.value, seen.value] = ["", null, null];
  };
  const text = h("textarea", { id: "ask-text", rows: "3", spellcheck: "false", class: "mono", oninput: forget });
  const confirmed = h("input", { type: "checkbox", onchange: forget });
  /** @param {string} path @param {object} more @param {(found: any) => void} show */
  const ask = async (path, more, show) => {
    forget();
    if (!text.value.trim()) {
      text.focus();
      return;
    }
    const mine = turn;
    try {
      const found = await post(path, { caller, source, statement: text.value, ...more });
      if (mine === turn) show(found);
    } catch (caught) {
      if (mine === turn) error.value = errorText(caught);
    }
  };
  const send = () => ask("access/ask", { confirmed: confirmed.checked }, (/** @type {Asked} */ found) => {
    asked.value = found;
    say(`It is: ${found.verdict}.`);
  });
  const preview = () => ask("access/preview", {}, (/** @type {Preview} */ found) => {
    seen.value = found;
    say(`${counted(found.rows.length, "row")}.`);
  });
  return h("div", { class: "ask" }, h("h3", {}, "Ask about one statement"),
    h("label", { for: "ask-text" }, "A statement: it is judged, and not run"), text,
    h("label", { class: "check" }, confirmed, "With the phrase of confirmation"),
    h("div", {}, h("button", { class: "small primary", onclick: () => void send() }, "Would it run?"), " ",
      caller.startsWith("token:") ? h("button", { class: "small", onclick: () => void preview() }, "Read as this token") : null),
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    () => (asked.value ? answerView(asked.value) : null), () => (seen.value ? previewView(seen.value) : null));
}

/** The first rows as a token reads them. @param {Preview} preview */
const previewView = ({ columns, rows, more }) => h("div", { class: "answer", role: "status" },
  h("p", { class: "note" }, "As the token reads them, without what is hidden from you. That you looked is on record."),
  rows.length ? tableBox("Rows as the token reads them", h("table", { class: "records" },
    h("thead", {}, h("tr", {}, columns.map(({ name, masked }) => h("th", { scope: "col" }, isolated(name),
      masked ? h("span", { class: "kind" }, " masked") : null)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value) => h("td", {}, cell(value)))))))) : h("p", {}, "No rows."),
  more ? h("p", { class: "note" }, "There are more.") : null);

/** @param {Asked} asked */
function answerView(asked) {
  const kind = asked.verdict === "confirm" ? "ask" : asked.verdict;
  const words = { allow: "It would run.", ask: "A person would be asked first.",
    confirm: "It needs the phrase of confirmation.", deny: "It would be refused." };
  return h("div", { class: "answer", role: "status" },
    h("p", { class: `finding v-${kind}` }, words[asked.verdict]),
    h("p", {}, prose(asked.reason), " ", h("code", {}, visible(asked.rule))),
    asked.hint && asked.verdict !== "allow" ? h("p", { class: "note" }, "The advice that the caller gets: ", prose(asked.hint)) : null,
    asked.effect ? h("p", { class: "note" }, `Effect: ${asked.effect}. `, visible(asked.judged_by),
      asked.tables.length ? [". Tables: ", asked.tables.map((name, index) => [index ? ", " : "", isolated(name)])] : null) : null,
    settingsView(asked.settings), rulesView(asked.rules));
}
