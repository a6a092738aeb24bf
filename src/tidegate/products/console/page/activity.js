/** Activity: every call on record, by session or one by one, with filters, proof and export. */

import { ActivityData, addressWith, FACETS, filtersOf } from "./activity_data.js";
import { errorText, get } from "./api.js";
import { sourceChip } from "./card.js";
import { dialogIsOpen } from "./dialogs.js";
import { h, keyed } from "./dom.js";
import { fileSaver } from "./file_saver.js";
import { atGate, gateName, lineName, missingGates, missingNames } from "./gates.js";
import { icon } from "./icons.js";
import { linePanel } from "./line_panel.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { go, newestLines, route, session as signedIn, silentGates, singleKeys } from "./state.js";
import { Story, storyView } from "./story.js";
import { counted, isolated, number, prose, timeNode, visible } from "./text.js";
import { virtualList } from "./virtual_list.js";

/** @typedef {import("./activity_data.js").Row} Row */
/** @typedef {import("./contract.js").Line} Line */

const ROW_HEIGHT = matchMedia("(pointer: coarse)").matches ? 44 : 34;
const TYPING_MS = 250;
const TIMES = [["", "Any time"], ["1h", "Last hour"], ["24h", "Last day"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];
const LABELS = { source: "Source", actor: "Caller", outcome: "Outcome", effect: "Effect", surface: "Surface" };

export function activityView() {
  const data = new ActivityData();
  onEnd(() => data.end());
  const folded = computed(() => (route.value.query.get("view") ?? "sessions") !== "calls" && !route.value.query.get("session"));
  const wanted = computed(() => JSON.stringify([filtersOf(route.value.query), folded.value]));
  const session = computed(() => route.value.query.get("session") ?? "");
  const story = new Story();
  const rows = computed(() => (session.value ? story.rows : data.rows(folded.value)));
  const chosen = computed(() => route.value.query.get("line") ?? "");
  const load = () => data.load(filtersOf(route.peek().query), folded.peek());
  effect(() => {
    void wanted.value;
    if (route.value.page === "activity") void load();
  });
  effect(() => {
    if (route.value.page === "activity" && session.value) void story.load(filtersOf(route.peek().query));
  });
  const list = virtualList({
    label: "Calls on record, newest first",
    rowHeight: ROW_HEIGHT,
    count: () => rows.value.length,
    keyOf: (index) => rowKey(rows.peek()[index]),
    render: (index) => rowView(rows.peek()[index], data, () => chosen.value),
    onEndInSight: () => void (folded.peek() ? data.older() : data.more()),
  });
  const reload = () => {
    list.toTop();
    void load();
    if (session.peek()) void story.load(filtersOf(route.peek().query));
  };
  moveByKeys(rows, chosen, (at) => (session.peek()
    ? document.getElementById(`line-${at}`)?.scrollIntoView({ block: "nearest" }) : list.reveal(at)));
  return h("div", { class: "activity" },
    h("h1", { class: "sr" }, "Activity"),
    h("header", { class: "page-head" }, h("div", { class: "title", "aria-hidden": "true" }, "Activity"), proofLine(), exportMenu(data)),
    filterBar(data, folded),
    chips(),
    h("div", { class: "count-line" },
      h("span", { role: "status" }, () => countText(data, folded.value)),
      () => ownReads(data),
      () => newButton(data, reload)),
    () => missingGates(data.gates.value.missing),
    () => silentNote(data),
    () => (data.read.value < 1 ? h("p", { class: "note reading", role: "status" },
      `The record is being read for searching: ${Math.floor(data.read.value * 100)} %. The newest lines come last.`) : null),
    () => (data.error.value ? h("p", { class: "error", role: "alert" }, prose(data.error.value)) : null),
    h("div", { class: () => `split ${chosen.value ? "has-panel" : ""}` },
      keyed(() => session.value !== "", () => (session.peek()
        ? storyView(story, () => chosen.value) : list.box)),
      keyed(() => chosen.value, () => (chosen.peek()
        ? linePanel(chosen.peek(), () => go(addressWith({ line: "" }))) : null))));
}

/** @param {Row | undefined} row */
function rowKey(row) {
  if (!row) return "";
  if (row.kind === "session") return `s ${row.session.session} ${row.open} ${row.session.calls}`;
  return row.kind === "more" ? `m ${row.session}` : `l ${lineName(row.line)} ${row.line.n} ${row.line.outcome} ${row.inner}`;
}

/** @param {Row} row @param {ActivityData} data @param {() => string} chosen */
function rowView(row, data, chosen) {
  if (row.kind === "session") return sessionRow(row, data);
  if (row.kind === "more") {
    return h("li", { class: "vrow more" },
      h("button", { class: "small", onclick: () => void data.moreOf(row.session) }, "More of this session"));
  }
  const { line } = row;
  return h("li", { class: `vrow ${row.inner ? "inner" : ""}` }, h("a", {
    class: "line", href: addressWith({ line: lineName(line) }),
    "aria-current": () => (chosen() === lineName(line) ? "true" : null),
    onclick: (/** @type {Event} */ event) => (event.preventDefault(), go(addressWith({ line: lineName(line) }))),
  },
    timeNode(line.time, true),
    h("span", { class: `outcome o-${line.outcome.replace(/[^a-z]/g, "")}` }, visible(line.outcome)),
    h("span", { class: "who" }, isolated(line.actor_name || line.actor || "server")),
    h("span", { class: "where" }, placeOf(line.source)),
    h("span", { class: "effect" }, visible(line.effect)),
    h("span", { class: "text" }, gateName(data.gates.peek(), line.gate), visible(oneLine(line))),
    h("span", { class: "rows" }, line.rows === null ? "" : counted(line.rows, "row"))));
}

/** The source with its color, where this operator knows it. @param {string} name */
function placeOf(name) {
  const known = signedIn.peek()?.sources.find((source) => source.name === name);
  return known ? sourceChip(known) : isolated(name);
}

/** @param {Line} line */
const oneLine = (line) =>
  (line.statement || line.event || line.tool || line.request).replace(/\s+/g, " ").slice(0, 300);

/** @param {Extract<Row, { kind: "session" }>} row @param {ActivityData} data */
function sessionRow({ session, open }, data) {
  return h("li", { class: "vrow session" },
    h("button", {
      class: "fold", "aria-expanded": String(open), onclick: () => void data.toggle(session.session),
    },
      icon("chevron"), h("strong", {}, isolated(session.actor_name || "server")),
      h("span", { class: "client" }, isolated(session.client)), gateName(data.gates.peek(), session.gate),
      h("span", { class: "times" }, timeNode(session.started_at), "–", timeNode(session.ended_at)),
      h("span", { class: "sums" }, counted(session.calls, "call"),
        session.writes ? h("span", { class: "writes" }, `, ${counted(session.writes, "write")}`) : null,
        session.denied ? h("span", { class: "denied" }, `, ${number(session.denied)} denied`) : null)),
    h("a", { class: "story", href: addressWith({ session: session.call_id ? atGate(session.call_id, session.gate) : String(session.session), line: "" }),
      "aria-label": `Open the session of ${session.actor_name || "server"} alone` }, "Open"));
}

/** @param {ActivityData} data */
function silentNote(data) {
  const named = new Set(data.gates.value.missing.map(({ gate }) => gate));
  const silent = silentGates.value.filter(({ gate }) => !named.has(gate));
  if (!silent.length) return null;
  return h("p", { class: "note silent-gates", role: "status" }, "New lines are not announced of ",
    silent.map(({ name }, at) => [at ? ", " : "", isolated(name)]), ", which does not answer.");
}

/** @param {ActivityData} data @param {boolean} folded */
function countText(data, folded) {
  if (data.loading.value) return "Loading …";
  const { total, more } = data.counts.value;
  const calls = `${number(total)}${more ? "+" : ""} line${total === 1 && !more ? "" : "s"}`;
  return folded ? `${calls} in ${data.hasOlder ? "the newest " : ""}${counted(data.sessions.value.length, "session")}` : calls;
}

/** What this page read to draw itself is left out until someone asks for it. @param {ActivityData} data */
function ownReads(data) {
  const { left_out: count, more } = data.counts.value.own;
  if (data.loading.value || !count) return null;
  return h("span", { class: "own-reads" },
    `${number(count)}${more ? "+" : ""} ${count === 1 ? "read" : "reads"} of the console's own left out `,
    h("button", { class: "small", "aria-label": "Show the console's own reads",
      onclick: () => go(addressWith({ own: "shown", line: "" })) }, "Show"));
}

/** @param {ActivityData} data @param {() => void} reload */
function newButton(data, reload) {
  const seen = data.newest.value;
  if (!seen) return null;
  let [count, isSure] = [0, true];
  for (const [gate, n] of Object.entries(newestLines.value)) {
    if (gate in seen) count += Math.max(0, n - (seen[gate] ?? 0));
    else if (!data.filters.session) isSure = false; // its lines are all missing
  }
  if (!count && isSure) return null;
  // Between two lines of an operator's own sources are those of others, which are not to be counted.
  const seesAll = signedIn.value?.operator.roles.some(({ sources }) => sources === null);
  // Nor are the console's own reads, unless they are shown.
  const filters = Object.keys(data.filters);
  const uncounted = !isSure || filters.length !== 1 || data.filters.own !== "shown" || !seesAll;
  return h("button", { class: "small new-lines", onclick: reload }, uncounted ? "New lines" : `${number(count)} new`);
}

/** @param {ActivityData} data @param {{ value: boolean }} folded */
function filterBar(data, folded) {
  const search = h("input", {
    type: "search", id: "q", "aria-label": "Search", placeholder: "Search statements, names, errors",
    value: route.peek().query.get("q") ?? "", spellcheck: "false", autocomplete: "off",
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(find, TYPING_MS);
    },
    onblur: () => (isNew = true),
  });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let typing;
  let isNew = true;
  /** What is typed in one go is one step of the way back. */
  const find = () => {
    clearTimeout(typing);
    typing = undefined;
    const address = addressWith({ q: search.value.trim(), line: "" });
    if (address === location.hash) return;
    go(address, { replace: !isNew });
    isNew = false;
  };
  effect(() => {
    const q = route.value.query.get("q") ?? "";
    if (route.value.page === "activity" && typing === undefined && search.value.trim() !== q) search.value = q;
  });
  onEnd(() => clearTimeout(typing));
  const unfolded = signal(false);
  return h("form", { class: () => `filters ${unfolded.value ? "unfolded" : ""}`, role: "search", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    find();
    isNew = true;
  } },
    h("span", { class: "search" }, icon("search"), search),
    h("button", {
      type: "button", class: "more-filters", "aria-expanded": () => String(unfolded.value),
      onclick: () => (unfolded.value = !unfolded.peek()),
    }, "Filters"),
    FACETS.map((name) => facetSelect(data, name)),
    select("Time", TIMES, () => route.value.query.get("since") ?? "", (since) => go(addressWith({ since, line: "" }))),
    h("div", { class: "views", role: "group", "aria-label": "Show" },
      viewButton("Sessions", () => folded.value, "sessions"), viewButton("Calls", () => !folded.value, "calls")));
}

/** @param {string} label @param {() => boolean} on @param {string} view */
const viewButton = (label, on, view) => h("button", {
  type: "button", "aria-pressed": () => String(on()),
  onclick: () => go(addressWith({ view, line: "", ...(view === "sessions" ? { session: "" } : {}) })),
}, label);

/** @param {ActivityData} data @param {(typeof FACETS)[number]} name */
function facetSelect(data, name) {
  const current = () => route.value.query.get(name) ?? "";
  return () => {
    const found = data.facets.value[name] ?? [];
    const value = current();
    const options = [["", LABELS[name]], ...found.map(([each, count]) => [each, `${each || "none"} (${number(count)})`])];
    if (value && !found.some(([each]) => each === value)) options.push([value, value]);
    return select(LABELS[name], options, () => value, (next) => go(addressWith({ [name]: next, line: "" })));
  };
}

/** @param {string} label @param {string[][]} options @param {() => string} value
 * @param {(value: string) => void} change */
const select = (label, options, value, change) => h("select", {
  "aria-label": label, class: () => (value() ? "set" : ""),
  onchange: (/** @type {Event} */ event) => change(/** @type {HTMLSelectElement} */ (event.target).value),
}, options.map(([each, text]) => h("option", { value: each, selected: each === value() }, visible(text))));

/** What narrows the list, each with a button that takes it away. */
function chips() {
  return () => {
    const filters = Object.entries(filtersOf(route.value.query)).filter(([name]) => name !== "since" && name !== "session");
    if (!filters.length) return null;
    return h("ul", { class: "chips", "aria-label": "Filters" }, filters.map(([name, value]) => h("li", {},
      h("button", { class: "small", onclick: () => go(addressWith({ [name]: "", line: "" })) },
        h("span", { class: "sr" }, "Take away the filter "), `${name}: `, isolated(value), icon("close")))));
  };
}

function proofLine() {
  const proof = signal(/** @type {import("./contract.js").LogProof | null} */ (null));
  const ended = new AbortController();
  onEnd(() => ended.abort());
  const ask = async () => {
    try {
      proof.value = await get("activity/proof", ended.signal);
    } catch (error) {
      if (!ended.signal.aborted) proof.value = { state: "unknown", text: errorText(error), running: false };
    }
    const found = proof.peek();
    const isRead = found && [found, ...(found.others ?? [])].some(({ running }) => running);
    if (isRead && !ended.signal.aborted) setTimeout(ask, 3000);
  };
  void ask();
  return h("div", { class: "proof", role: "status" }, () => {
    if (!proof.value) return "Checking the record …";
    const { others = [], missing = [] } = proof.value;
    const isAlone = !others.length && !missing.length;
    return [[proof.value, ...others].map((each) => proofText(each, isAlone ? "" : each.name || each.gate)),
      missing.length ? h("p", {}, "Not checked: ", missingNames(missing), ".") : null];
  });
}

/** What is proved of one record. @param {import("./contract.js").RecordProof} proof @param {string} [gate] */
const proofText = (proof, gate) => h("p", {},
  h("span", { class: `p-${proof.state.replace(/[^a-z_]/g, "")}` },
    icon(proof.state === "mismatch" ? "warning" : "check"), gate ? [isolated(gate), ": "] : null, visible(proof.text),
    proof.after_checkpoint ? `, ${number(proof.after_checkpoint)} calls and events came after it` : null,
    proof.at && !proof.running ? [". Checked ", timeNode(proof.at)] : null));

/** @param {ActivityData} data */
function exportMenu(data) {
  const saver = fileSaver("activity");
  /** @param {string} format */
  const save = (format) => void saver.save({ format, filters: data.filters });
  return h("div", { class: "export" },
    h("span", { id: "export-label" }, "Export"),
    h("button", { class: "small", "aria-label": "Export as JSON lines", onclick: () => save("jsonl") }, "JSON lines"),
    h("button", { class: "small", "aria-label": "Export as CSV", onclick: () => save("csv") }, "CSV"),
    saver.node);
}

/** j and k go through the lines; Escape closes the panel.
 * @param {import("./signals.js").Signal<Row[]>} rows @param {import("./signals.js").Signal<string>} chosen
 * @param {(index: number) => void} reveal */
function moveByKeys(rows, chosen, reveal) {
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialogIsOpen()) return;
    if (/** @type {HTMLElement} */ (event.target).closest?.("input, textarea, select")) return;
    if (event.key === "Escape" && chosen.peek()) go(addressWith({ line: "" }));
    if (singleKeys.value === "off" || (event.key !== "j" && event.key !== "k")) return;
    const step = event.key === "j" ? 1 : -1;
    const list = rows.peek();
    let at = list.findIndex((row) => row.kind === "line" && lineName(row.line) === chosen.peek());
    if (at < 0 && step < 0) return;
    do at += step; while (list[at] && list[at].kind !== "line");
    const row = list[at];
    if (row?.kind !== "line") return;
    go(addressWith({ line: lineName(row.line) }), { replace: true });
    reveal(at);
  };
  document.addEventListener("keydown", press);
  onEnd(() => document.removeEventListener("keydown", press));
}
