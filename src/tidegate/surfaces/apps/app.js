/**
 * The page of an MCP App: a result, a chart, a plan or a question in a person's client. It draws from the
 * text of the tool's result, as clients may drop all else. It calls no tool but `more`, and it has no way
 * to answer a question: what a view asks for is the model's call.
 */

import { chartFigure, element, visible } from "./chart.js";

/** @typedef {{ columns?: string[], rows?: unknown[][], affected?: number, more?: string, note?: string,
 *   chart?: Record<string, any>, error?: string, row_count?: number, rows_affected?: number, is_truncated?: boolean,
 *   status_message?: string, plan_text?: string }} Answer */

const VERSION = "2026-01-26";
const PATIENCE_MS = 6_000;
const ROWS_AT_ONCE = 100;
const main = /** @type {HTMLElement} */ (document.querySelector("main"));
const state = { asked: 0, statement: "", tool: "", isDrawn: false, isConnected: false };
/** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
const waiting = new Map();

/** @param {object} message */
const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

/** @param {string} method @param {object} params @returns {Promise<any>} */
function ask(method, params) {
  const id = (state.asked += 1);
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

/** The text of a tool's result. @param {any} result @returns {string} */
function textOf(result) {
  const content = /** @type {{ type?: string, text?: string }[]} */ (Array.isArray(result?.content) ? result.content : []);
  return content.find(({ type, text }) => type === "text" && typeof text === "string")?.text ?? "";
}

/** @param {unknown} value */
function cell(value) {
  if (value === null || value === undefined) return element("td", {}, element("span", { class: "null" }, "NULL"));
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  return element("td", typeof value === "number" ? { class: "number" } : {}, visible(shown));
}

/** @param {string} label @param {() => void} work */
function button(label, work) {
  const made = element("button", { type: "button" }, label);
  made.addEventListener("click", work);
  return made;
}

/** @param {string} text */
const note = (text) => element("p", { class: "note" }, visible(text));

/** @param {string} text */
const code = (text) => element("pre", { tabindex: "0" }, visible(text));

/** Rows as a table that grows: by what is here, then by the tool `more`. @param {Answer} answer */
function table({ columns = [], rows = [], more = "" }) {
  const body = element("tbody");
  const all = [...rows];
  let [shown, handle] = [0, more];
  const count = element("p", { class: "note", role: "status" });
  const next = button("Show more", () => void (shown < all.length ? add() : fetchMore()));
  const add = () => {
    for (const row of all.slice(shown, shown + ROWS_AT_ONCE)) body.append(element("tr", {}, ...row.map(cell)));
    shown = Math.min(shown + ROWS_AT_ONCE, all.length);
    next.hidden = shown >= all.length && !handle;
    count.textContent = `${shown} of ${all.length}${handle ? " or more" : ""} rows.`;
  };
  const fetchMore = async () => {
    next.disabled = true;
    try {
      const result = await ask("tools/call", { name: "more", arguments: { handle } });
      const text = textOf(result);
      if (result.isError) throw new Error(text);
      const answer = /** @type {Answer} */ (JSON.parse(text));
      handle = answer.more ?? "";
      all.push(...(answer.rows ?? []));
      add();
    } catch (error) {
      count.textContent = visible(error instanceof Error ? error.message : String(error));
    }
    next.disabled = false;
  };
  add();
  return element("div", {}, element("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Rows" },
    element("table", {}, element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, visible(name))))), body)), count, next);
}

/** One answer. @param {Answer} answer @returns {Node[]} */
function parts(answer) {
  if (answer.error !== undefined) return [problem(answer.error)];
  const notes = [answer.note, answer.status_message].filter((each) => each).map((each) => note(String(each)));
  if (answer.is_truncated) notes.push(note("There are more rows than are shown."));
  if (answer.chart) {
    const { columns = [], rows = [] } = answer;
    const chart = /** @type {any} */ ({ ...answer.chart, columns, rows });
    return [...notes, chartFigure(chart, { label: "Chart", name: "chart", saves: false }).node];
  }
  if (answer.plan_text !== undefined) return [code(answer.plan_text)];
  const changed = answer.affected ?? answer.rows_affected ?? 0;
  const found = changed ? [note(`${changed} row${changed === 1 ? "" : "s"} changed.`), ...notes] : notes;
  if (!answer.columns?.length) return found.length ? found : [note("Done.")];
  const isPlan = state.tool.startsWith("explain") || answer.columns.join() === "QUERY PLAN";
  if (isPlan) return [code((answer.rows ?? []).map((row) => row.map(String).join("  ")).join("\n")), ...found];
  return [table(answer), ...found];
}

/** A refusal or a failure; a question is a card that leads to the Inbox and answers nothing. @param {string} text */
function problem(text) {
  if (!/^approval\.needed\b/.test(text)) return element("div", { class: "card bad", role: "alert" }, code(text));
  const address = /https?:\/\/[^\s"'<>]+\/console#\/inbox[\w/-]*/.exec(text)?.[0];
  const said = element("p", { class: "note", role: "status" });
  const open = address ? [button("Open the Inbox", async () => {
    const refused = await ask("ui/open-link", { url: address }).then((result) => Boolean(result?.isError), () => true);
    said.textContent = refused ? "Your client did not open it. Open the address yourself." : "";
  }), element("p", {}, element("code", {}, address))] : [];
  return element("div", { class: "card" }, element("h1", {}, "A person must answer first"),
    ...(state.statement ? [code(state.statement)] : []), element("p", {}, visible(text.replace(/^approval\.needed:\s*/, ""))), ...open, said,
    note("It is answered in the Inbox alone, not here."));
}

/** @param {any} result of the tool */
function draw(result) {
  state.isDrawn = true;
  const text = textOf(result);
  let answers = /** @type {Answer[] | null} */ (null);
  try {
    const read = JSON.parse(text);
    answers = [read].flat().filter((each) => each !== null && typeof each === "object");
  } catch {
    // It is a sentence.
  }
  if (result?.isError || !answers?.length) main.replaceChildren(result?.isError ? problem(text) : code(text || "The answer has no text."));
  else main.replaceChildren(...answers.map((each) => element("section", {}, ...parts(each))));
}

/** @param {any} context */
function follow(context) {
  if (context?.theme === "dark" || context?.theme === "light") {
    document.documentElement.style.colorScheme = context.theme;
    document.documentElement.dataset.theme = context.theme;
  }
  for (const [name, value] of Object.entries(context?.styles?.variables ?? {})) {
    if (name.startsWith("--") && typeof value === "string") document.documentElement.style.setProperty(name, value);
  }
  if (context?.toolInfo?.tool?.name) state.tool = String(context.toolInfo.tool.name);
}

/** @type {Record<string, (params: any) => void>} */
const NOTICES = {
  "ui/notifications/tool-input": ({ arguments: given }) => (state.statement = String(given?.sql ?? given?.query ?? "")),
  "ui/notifications/tool-result": draw,
  "ui/notifications/tool-cancelled": () => main.replaceChildren(note("The call was cancelled.")),
  "ui/notifications/host-context-changed": follow,
};

addEventListener("message", ({ source, data: message }) => {
  if (source !== parent || message?.jsonrpc !== "2.0") return;
  state.isConnected = true;
  if (message.method === undefined) {
    const waits = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) waits?.reject(new Error(String(message.error.message ?? "refused")));
    else waits?.resolve(message.result);
  } else if (message.id === undefined) NOTICES[message.method]?.(message.params ?? {});
  else if (message.method === "ui/resource-teardown" || message.method === "ping") send({ id: message.id, result: {} });
  else send({ id: message.id, error: { code: -32601, message: "Method not found" } });
});

new ResizeObserver(() => {
  const { scrollWidth: width } = document.documentElement;
  send({ method: "ui/notifications/size-changed", params: { width, height: Math.ceil(document.body.getBoundingClientRect().height) } });
}).observe(document.body);

setTimeout(() => {
  if (!state.isDrawn && !state.isConnected) main.replaceChildren(note("Your client shows nothing here. The answer is in the conversation, as text."));
}, PATIENCE_MS);

void ask("ui/initialize", { protocolVersion: VERSION, appInfo: { name: "tidegate", version: "1" }, appCapabilities: {} }).then((found) => {
  follow(found?.hostContext);
  send({ method: "ui/notifications/initialized", params: {} });
});
