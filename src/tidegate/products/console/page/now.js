/** Now: the calls under way, figures of the last hour and day, and how the server is. */

import { errorText, get, post, query } from "./api.js";
import { sourceChip } from "./card.js";
import { ask } from "./dialogs.js";
import { each, h, keyed, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { webhookNote } from "./inbox.js";
import { plot } from "./plot.js";
import { tableBox } from "./rows.js";
import { computed, onEnd, signal } from "./signals.js";
import { cards, listen, say, session } from "./state.js";
import { ago, counted, isolated, number, prose, serverTime, timeNode, visible, when } from "./text.js";

/** @typedef {import("./contract.js").Gate} Gate */
/** @typedef {import("./contract.js").NowPage} NowPage */
/** @typedef {import("./contract.js").RunningCall} RunningCall */
/** @typedef {import("./dom.js").Child} Child */

const RENEW_MS = 10_000;
const SOON_MS = 1_000;
const STATES = /** @type {Record<RunningCall["state"], string>} */ ({
  preparing: "preparing", waiting: "waits for approval", queued: "queued", running: "running",
  cancelling: "is cancelled",
});
const GATES = /** @type {Record<Gate["state"], string>} */ ({
  here: "this one", answers: "answers", partly: "some of its processes do not answer", silent: "does not answer",
  unknown: "is asked …", gone: "is gone",
});

export async function nowView() {
  await loadStyle("now.css");
  return view;
}

function view() {
  const page = signal(/** @type {NowPage | null} */ (null));
  const calls = signal(/** @type {{ calls: RunningCall[], more: number }} */ ({ calls: [], more: 0 }));
  const error = signal("");
  const span = signal("hour");
  const source = signal("");
  let [asked, soon, ended, tries] = [0, 0, false, 0];
  const load = async () => {
    const mine = (asked += 1);
    try {
      const found = await get(`now?${query({ range: span.peek(), source: source.peek() })}`);
      if (mine !== asked) return;
      page.value = found;
      calls.value = found;
      error.value = "";
      clearTimeout(soon);
      const mayCome = found.figures.missing.length > 0 && (tries += 1) < 4;
      if ((!found.figures.complete || mayCome) && !ended) soon = setTimeout(load, SOON_MS);
    } catch (caught) {
      if (mine === asked) error.value = errorText(caught);
    }
  };
  const timer = setInterval(load, RENEW_MS);
  onEnd(() => {
    ended = true;
    clearInterval(timer);
    clearTimeout(soon);
  });
  onEnd(listen("now", (found) => (calls.value = found)));
  onEnd(listen("refreshed", () => void load()));
  void load();
  return h("div", { class: "now" },
    h("header", { class: "page-head" }, h("h1", {}, "Now")),
    () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
    keyed(() => page.value !== null, () => (page.peek() === null
      ? (error.peek() ? null : h("p", { class: "note" }, "Loading …"))
      : [
        underWay(calls, load, error),
        figures(/** @type {import("./signals.js").Signal<NowPage>} */ (page), span, source, load),
        sources(/** @type {import("./signals.js").Signal<NowPage>} */ (page)),
        gates(/** @type {import("./signals.js").Signal<NowPage>} */ (page)),
        server(/** @type {import("./signals.js").Signal<NowPage>} */ (page)),
      ])));
}

/** @param {import("./signals.js").Signal<{ calls: RunningCall[], more: number }>} calls
 * @param {() => Promise<void>} load @param {import("./signals.js").Signal<string>} error */
function underWay(calls, load, error) {
  const seconds = signal(0);
  const timer = setInterval(() => (seconds.value += 1), 1_000);
  onEnd(() => clearInterval(timer));
  const lasted = (/** @type {number} */ since) => {
    void seconds.value;
    return duration(Math.max(0, serverTime() - since) * 1_000);
  };
  /** @param {RunningCall} call */
  const cancel = async (call) => {
    const yes = await ask({
      title: "Cancel the call?", action: "Cancel the call", back: "Let it run", kind: "danger", read: () => true,
      body: [h("p", {}, "The call of ", isolated(call.actor_name), call.source ? [" on ", isolated(call.source.name)] : "",
        " ends, and its statement is interrupted in the database. The agent reads that an operator did it."),
      call.statement ? h("pre", { class: "wrap" }, visible(call.statement)) : null],
    });
    if (!yes) return;
    try {
      await post(`now/calls/${encodeURIComponent(call.id)}/cancel`, {});
      say("The call is cancelled.");
    } catch (caught) {
      error.value = errorText(caught);
      return;
    }
    await load();
  };
  return h("div", { class: "part" },
    h("h2", {}, "Calls under way"),
    () => (calls.value.calls.length ? null : h("p", { class: "note" }, "No call is under way.")),
    h("ul", { class: "running-calls" }, each(() => calls.value.calls, (call) => call.id, (call) => {
      const first = call.peek();
      return h("li", { class: () => `running-call is-${call.value.state}`, "data-call": first.id },
        h("span", { class: "who" }, h("strong", {}, isolated(first.actor_name || first.surface)),
          first.client ? [" with ", isolated(first.client.split("/")[0])] : null),
        h("span", { class: "where" }, keyed(() => call.value.source?.name ?? "",
          () => (call.peek().source ? sourceChip(/** @type {any} */ (call.peek().source)) : h("span", { class: "note" }, "no source")))),
        h("span", { class: "what" }, keyed(() => `${call.value.withheld} ${call.value.statement}`, () => {
          const { withheld, statement, tool, request } = call.peek();
          if (withheld) return h("span", { class: "note" }, "The statement is for approvers alone.");
          return statement ? h("code", {}, visible(statement)) : [isolated(tool || request)];
        })),
        h("span", { class: "how" }, h("span", { class: "call-state" }, () => STATES[call.value.state]),
          () => (call.value.rows === null ? null : h("span", {}, counted(call.value.rows, "row"))),
          h("span", { class: "age" }, () => lasted(first.since))),
        keyed(() => call.value.may_cancel && call.value.state !== "cancelling", () => (call.peek().may_cancel && call.peek().state !== "cancelling"
          ? h("button", { class: "small", onclick: () => void cancel(call.peek()) }, "Cancel",
            h("span", { class: "sr" }, ` the call of ${first.actor_name}`)) : h("span", {}))));
    })),
    () => (calls.value.more ? h("p", { class: "note" }, `and ${counted(calls.value.more, "call")} more`) : null),
    h("p", { class: "note" }, "Calls of all processes on this state, of others half a second later."));
}

/** @param {import("./signals.js").Signal<NowPage>} page @param {import("./signals.js").Signal<string>} span
 * @param {import("./signals.js").Signal<string>} source @param {() => Promise<void>} load */
function figures(page, span, source, load) {
  const of = computed(() => page.value.figures);
  const sum = (/** @type {number[]} */ values) => values.reduce((one, other) => one + other, 0);
  const whole = () => (of.value.span === "hour" ? "last hour" : "last day");
  const minutes = () => of.value.step_s / 60;
  /** @param {string} label @param {() => Child} value @param {() => string} note */
  const tile = (label, value, note) => h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value, h("span", { class: "note" }, note)));
  /** @param {() => [string, (number | null)[]][]} lines @returns {() => import("./plot.js").PlotData} */
  const reader = (lines) => () => ({
    since: of.value.since, step: of.value.step_s,
    lines: lines().map(([name, values]) => ({ name, values })),
  });
  const perMinute = (/** @type {number[]} */ values) => values.map((value) => value / minutes());
  return h("div", { class: "part" },
    h("div", { class: "part-head" },
      h("h2", {}, "Figures"),
      h("div", { class: "choices", role: "group", "aria-label": "How far back" },
        [["hour", "Last hour"], ["day", "Last day"]].map(([value, label]) => h("button", {
          class: "small", "aria-pressed": () => String(span.value === value),
          onclick: () => ((span.value = value), void load()),
        }, label))),
      h("label", { class: "sr", for: "now-source" }, "Source"),
      h("select", { id: "now-source", onchange: (/** @type {Event} */ event) => {
        source.value = /** @type {HTMLSelectElement} */ (event.target).value;
        void load();
      } }, h("option", { value: "" }, "all sources"),
      (session.peek()?.sources ?? []).map(({ name }) => h("option", { value: name }, name)))),
    () => (of.value.complete ? null : h("p", { class: "note" }, "Reading the record of the last day …")),
    () => (of.value.missing.length ? h("p", { class: "note" },
      `Without those of ${of.value.missing.join(", ")}, which has not sent them.`) : null),
    () => (of.value.shared ? h("p", { class: "note" }, "Some sources are counted together, and not shown here.") : null),
    h("dl", { class: "tiles" },
      tile("Calls", () => number(sum(of.value.calls)), whole),
      tile("Denied", () => number(sum(of.value.denied)), whole),
      tile("Failed", () => number(sum(of.value.failed)), whole),
      tile("Wait for approval", () => h("a", { href: "#/inbox" }, number(cards.pending.length)), () => "now"),
      tile("Time, median", () => time(of.value.total_p50), whole),
      tile("Time, 99 %", () => time(of.value.total_p99), whole)),
    h("div", { class: "plots" },
      plot({ title: "Calls per minute", name: "calls", format: rate, read: reader(() => [
        ["answered", perMinute(of.value.calls.map((all, at) =>
          all - of.value.asked[at] - of.value.denied[at] - of.value.failed[at]))],
        ["asked", perMinute(of.value.asked)], ["denied", perMinute(of.value.denied)], ["failed", perMinute(of.value.failed)]]) }),
      plot({ title: "Time of statements", name: "times", format: time, logarithmic: true,
        read: reader(() => [["median", of.value.p50], ["99 %", of.value.p99]]) }),
      plot({ title: "Questions that waited", name: "waiting", format: number,
        read: reader(() => [["waiting", of.value.waiting]]) })));
}

/** @param {import("./signals.js").Signal<NowPage>} page */
const sources = (page) => h("div", { class: "part" },
  h("h2", {}, "Sources in use"),
  () => (page.value.sources.length
    ? tableBox("Sources in use", h("table", { class: "records" },
      h("thead", {}, h("tr", {}, ["Source", "State", "Statements", "Connections", "Last used", "Last error"].map((name) =>
        h("th", { scope: "col" }, name)))),
      h("tbody", {}, page.value.sources.map((each) => h("tr", {},
        h("td", {}, sourceChip(each)), h("td", { class: each.status === "error" ? "bad" : "" }, each.status),
        h("td", {}, number(each.running)), h("td", {}, each.connections === null ? "–" : number(each.connections)),
        h("td", {}, each.last_active_at ? timeNode(each.last_active_at) : "–"),
        h("td", { class: "error-cell" }, each.error ? prose(each.error) : "–"))))))
    : h("p", { class: "note" }, "No source is open.")));

/** @param {import("./signals.js").Signal<NowPage>} page */
const gates = (page) => h("div", {}, () => (page.value.gates.length < 2 ? null : h("div", { class: "part" },
  h("h2", {}, "Gates on this state"),
  tableBox("Gates on this state", h("table", { class: "records" },
    h("thead", {}, h("tr", {}, ["Gate", "State", "Processes", "Last seen"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, page.value.gates.map((each) => h("tr", {},
      h("td", {}, isolated(each.place)),
      h("td", { class: ["partly", "silent", "gone"].includes(each.state) ? "bad" : "" }, GATES[each.state]),
      h("td", {}, number(each.processes)), h("td", {}, timeNode(each.seen_at))))))),
  h("p", { class: "note" }, "One that will not come back is forgotten by ",
    h("code", {}, "tidegate audit forget"), "."))));

/** @param {import("./signals.js").Signal<NowPage>} page */
const server = (page) => h("div", { class: "part" },
  h("h2", {}, "This server"),
  h("dl", { class: "facts" },
    h("dt", {}, "Record"), h("dd", {}, () => {
      const problems = Object.entries(page.value.record.problems);
      if (!problems.length) return "is written";
      return h("ul", { class: "plain bad" }, problems.map(([name, why]) => h("li", {}, icon("warning"), " ", visible(`${name}: ${why}`))));
    }),
    h("dt", {}, "Last checkpoint"), h("dd", {}, () => {
      const at = page.value.record.checkpoint_at;
      return at ? [timeNode(at), ` (${ago(at) === "now" ? "just now" : `${ago(at)} ago`})`] : "none yet";
    }),
    h("dt", {}, "Free on its disk"), h("dd", {}, () => bytes(page.value.record.free_bytes)),
    h("dt", {}, "Webhook"), h("dd", {}, () => {
      const { state, sent_at: sent, waiting, digest_minutes: every } = page.value.webhook;
      if (state === "off") return "none";
      return webhookNote(page.value.webhook) ?? [
        sent ? `last message ${when(sent)}` : "works", waiting ? `, ${counted(waiting, "message")} waiting` : "",
        every ? `, a digest every ${counted(every, "minute")}` : ""];
    })));

/** @param {number | null} value in milliseconds */
export function time(value) {
  if (value === null) return "–";
  if (value < 1) return value < 0.1 ? "0.1 ms" : `${value.toFixed(1)} ms`;
  if (value < 10) return `${Number(value.toFixed(1))} ms`;
  if (value < 1_000) return `${Math.round(value)} ms`;
  return `${Number((value / 1_000).toFixed(value < 10_000 ? 1 : 0))} s`;
}

/** @param {number} value */
const rate = (value) => (value > 0 && value < 10 ? String(Number(value.toFixed(1))) : number(Math.round(value)));

/** @param {number} value in milliseconds */
function duration(value) {
  const seconds = Math.floor(value / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** @param {number | null} value */
function bytes(value) {
  if (value === null) return "not known";
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let [left, unit] = [value, 0];
  while (left >= 1_000 && unit < units.length - 1) [left, unit] = [left / 1_000, unit + 1];
  return `${left < 10 && unit ? left.toFixed(1) : Math.round(left)} ${units[unit]}`;
}
