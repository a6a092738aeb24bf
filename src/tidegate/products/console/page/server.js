/** A tab with the server of a source: its sessions, who waits for whom, slow statements, sizes, memory. */

import { ApiError, errorText, get, post, query } from "./api.js";
import { sourceChip } from "./card.js";
import { data } from "./data_state.js";
import { ask } from "./dialogs.js";
import { h, keyed, loadStyle } from "./dom.js";
import { icon } from "./icons.js";
import { tableBox } from "./rows.js";
import { effect, onEnd, signal } from "./signals.js";
import { go, perSession, say } from "./state.js";
import { counted, isolated, number, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./data_contract.js").DataTab} DataTab */
/** @typedef {import("./server_contract.js").ServerPanel} ServerPanel */
/** @typedef {import("./server_contract.js").ServerState} ServerState */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {Record<string, string | null>} Row */

const AGAIN_MS = 5_000;
const [KIB, STEPS] = [1024, ["B", "KiB", "MiB", "GiB", "TiB"]];

/** What waits for a yes, by tab: it is there after the way to the Inbox and back. */
const asked = perSession(() => /** @type {Map<string, object>} */ (new Map()));
const WAITS = "It waits for a yes in the Inbox. Then press “Cancel now”.";

class ServerTab {
  found = signal(/** @type {ServerState | null} */ (null));
  error = signal("");
  note = signal("");
  /** What waits for a yes. */
  waiting = signal(/** @type {object | null} */ (null));
  busy = signal(false);
  again = signal(false);
  #ended = new AbortController();

  /** @param {DataTab} tab */
  constructor(tab) {
    this.place = { source: tab.source, database: tab.database };
    onEnd(() => this.#ended.abort());
    this.waiting.value = asked().get(tab.id) ?? null;
    if (this.waiting.peek()) this.note.value = WAITS;
    effect(() => {
      if (this.waiting.value) asked().set(tab.id, this.waiting.value);
      else asked().delete(tab.id);
    });
    effect(() => {
      if (!this.again.value) return;
      const timer = setInterval(() => document.visibilityState === "visible" && data.active.peek() === tab.id && void this.read(), AGAIN_MS);
      onEnd(() => clearInterval(timer));
    });
    void this.read();
  }

  async read() {
    if (this.busy.peek()) return;
    this.busy.value = true;
    try {
      this.found.value = await get(`data/server?${query(this.place)}`, this.#ended.signal);
      this.error.value = "";
    } catch (error) {
      if (!this.#ended.signal.aborted) this.error.value = errorText(error);
    } finally {
      this.busy.value = false;
    }
  }

  /** Have what a session runs cancelled, once a person has said yes. @param {Row} session */
  async cancel(session) {
    const reason = h("textarea", { id: "cancel-reason", rows: "2", maxlength: "500" });
    const said = await ask({
      title: `Cancel what session ${session.id} runs?`, action: "Ask for it", kind: "danger",
      read: () => ({ reason: reason.value.trim() }),
      body: [
        h("p", {}, "Its statement ends with an error; the session itself stays. It is done only if the session is still the one shown here: ",
          isolated(`${session.user ?? ""} in ${session.database ?? "no database"}`), "."),
        h("p", { class: "note" }, "A person is asked in the Inbox, by the rules of the source."),
        h("label", { for: "cancel-reason" }, "What for (may be empty)"), reason,
      ],
    });
    if (!said) return;
    await this.#send({ ...this.place, session: session.id, started: session.started, reason: said.reason });
  }

  /** @param {object} body */
  async #send(body) {
    try {
      const { state } = await post("data/server/cancel", body);
      if (state === "asked") {
        this.waiting.value = body;
        this.note.value = WAITS;
        return;
      }
      this.waiting.value = null;
      this.note.value = state === "cancelled" ? "The statement was cancelled." : "The session had ended already: nothing was cancelled.";
      say(this.note.peek());
      await this.read();
    } catch (error) {
      this.waiting.value = error instanceof ApiError && error.status === 409 ? body : null;
      this.note.value = "";
      this.error.value = errorText(error);
    }
  }

  /** Send what waited for a yes again. */
  sendAgain() {
    const body = this.waiting.peek();
    if (body) void this.#send(body);
  }
}

/** @param {import("./signals.js").Signal<DataTab>} tab */
export function serverTab(tab) {
  void loadStyle("server.css");
  const state = new ServerTab(tab.peek());
  const { source } = tab.peek();
  const again = h("input", { type: "checkbox", checked: () => state.again.value, onchange: () => (state.again.value = again.checked) });
  return h("div", { class: "server" },
    h("header", { class: "server-head", role: "group", "aria-label": "Server" },
      () => sourceChip(data.source(source)),
      h("h2", {}, "Server of ", isolated(source)),
      h("button", { class: "small", onclick: () => void state.read() }, icon("refresh"), "Read again"),
      h("label", { class: "check" }, again, "Every 5 s"),
      h("span", { class: "note", role: "status" }, () => (state.busy.value ? "Reading …" : ""))),
    () => (state.error.value ? h("p", { class: "error", role: "alert" }, prose(state.error.value)) : null),
    () => (state.note.value ? h("p", { class: "notice", role: "status" }, state.note.value, " ",
      state.waiting.value ? [h("button", { class: "small", onclick: () => go("#/inbox") }, "Go to the Inbox"), " ",
        h("button", { class: "small", onclick: () => state.sendAgain() }, "Cancel now")] : null) : null),
    h("div", { class: "server-panels", tabindex: "0", role: "region", "aria-label": "What the server is busy with" },
      keyed(() => (state.found.value ? JSON.stringify(state.found.value) : ""), () => {
        const found = state.found.peek();
        return found ? panels(state, found) : state.error.peek() ? null : h("p", { class: "note" }, "Loading …");
      })));
}

/** @param {ServerTab} state @param {ServerState} found */
function panels(state, found) {
  const { rights, sessions, blocking, statements, sizes, memory } = found.panels;
  const missing = rowsOf(rights).filter((row) => row.granted !== "true");
  return [
    missing.length ? section("What the account may not see or do", null, table("What the account may not see or do",
      ["Without it", "What grants it"], missing.map((row) => [visible(row.what ?? ""), h("code", {}, visible(row.grant ?? ""))]), "")) : null,
    section("Sessions", sessions, table("Sessions", [
      "Session", "Account", "Database", "Client", "State", "For", "Waits for", "Waits behind",
      ...(sessions.columns.includes("query") ? ["Statement"] : []), ...(found.may_cancel ? ["Cancel"] : [])],
    rowsOf(sessions).map((row) => [
      [visible(row.id ?? ""), row.own === "true" ? h("span", { class: "tag" }, "this one") : null],
      name(row.user), name(row.database), name([row.client, row.address].filter(Boolean).join(", ")), name(row.state),
      row.seconds ? `${row.seconds} s` : "", name(row.waits_for), name(row.blocked_by),
      ...(sessions.columns.includes("query") ? [statement(row.query)] : []),
      ...(found.may_cancel ? [row.own === "true" || !row.started ? "" : h("button", { class: "small", "aria-label": `Cancel session ${row.id}`,
        onclick: () => void state.cancel(row) }, "Cancel")] : []),
    ]), "There is no session.")),
    found.panels.sessions.reason && !sessions.columns.length
      ? h("p", { class: "note" }, "What runs through Tidegate is on the page ", h("a", { href: "#/now" }, "Now"), ".") : null,
    section("Who waits for whom", blocking, table("Who waits for whom",
      ["Session", "Account", "For", "Waits for", "Held by session", "Account there", "State there"],
      rowsOf(blocking).map((row) => [name(row.blocked), name(row.user), row.seconds ? `${row.seconds} s` : "", name(row.waits_for),
        name(row.blocked_by), name(row.by_user), name(row.by_state)]), "No session waits for another.")),
    h("section", { class: "part" }, h("h3", {}, "Slow statements, by our history"),
      h("p", { class: "note" }, `The slowest of ${found.slow.own ? "your" : "the"} newest ${counted(found.slow.searched, "statement")} that ran through Tidegate.`),
      table("Slow statements, by our history", ["Time", "When", "Statement"], found.slow.statements.map((each) =>
        [`${number(each.ms)} ms`, timeNode(each.at), statement(each.statement)]), "Nothing was run yet.")),
    section("Slow statements, by the server", statements, table("Slow statements, by the server",
      ["Mean", "Calls", "In all", "Rows", "Statement"], rowsOf(statements).map((row) =>
        [`${row.mean_ms} ms`, name(row.calls), `${row.total_ms} ms`, name(row.rows), statement(row.query)]), "The server has counted none.")),
    section("Sizes", sizes, table("Sizes", ["Table", "Size", "Of it indexes", "Rows, about"], rowsOf(sizes).map((row) =>
      [[row.schema ? [isolated(row.schema), "."] : null, isolated(row.table ?? "")], size(row.bytes), size(row.index_bytes),
        row.rows && Number(row.rows) >= 0 ? number(Number(row.rows)) : ""]), "There is no table.")),
    section("Memory and limits", memory, table("Memory and limits", ["What", "Value"],
      rowsOf(memory).map((row) => [name(row.name), name(row.value)]), "Nothing is known.")),
  ];
}

/** @param {ServerPanel} panel @returns {Row[]} */
const rowsOf = ({ columns, rows }) => rows.map((row) => Object.fromEntries(columns.map((each, at) => [each, row[at]])));

/** @param {string} title @param {ServerPanel | null} panel @param {Child} shown */
function section(title, panel, shown) {
  return h("section", { class: "part" }, h("h3", {}, title),
    panel?.reason ? h("p", { class: "note" }, prose(panel.reason)) : shown,
    panel?.without_texts ? h("p", { class: "note" }, "Without statements: ", prose(panel.without_texts)) : null);
}

/** @param {string} title @param {string[]} head @param {Child[][]} rows @param {string} none */
const table = (title, head, rows, none) => (rows.length ? tableBox(title, h("table", { class: "facts-table" },
  h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each)))),
  h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((each, at) => (at ? h("td", {}, each) : h("th", { scope: "row" }, each))))))))
  : h("p", { class: "note" }, none));

/** @param {string | null | undefined} text */
const name = (text) => (text ? isolated(text) : "");

/** @param {string | null | undefined} text */
const statement = (text) => (text ? h("code", { class: "server-text" }, h("bdi", {}, visible(text.trim()))) : "");

/** @param {string | null | undefined} bytes */
function size(bytes) {
  if (!bytes) return "";
  let [value, step] = [Number(bytes), 0];
  while (value >= KIB && step < STEPS.length - 1) [value, step] = [value / KIB, step + 1];
  return `${value < 10 && step ? value.toFixed(1) : Math.round(value)} ${STEPS[step]}`;
}
