/** One session of an agent from its beginning: each call with what decided it and what proves it. */

import { addressWith } from "./activity_data.js";
import { errorText, get, query } from "./api.js";
import { sourceChip } from "./card.js";
import { h, keyed } from "./dom.js";
import { lineName } from "./gates.js";
import { icon } from "./icons.js";
import { batch, signal } from "./signals.js";
import { go, session, tell } from "./state.js";
import { counted, isolated, number, prose, timeNode, visible } from "./text.js";

/** @typedef {import("./activity_data.js").Row} Row */
/** @typedef {import("./contract.js").AgentSession} AgentSession */
/** @typedef {import("./contract.js").ProvedLine} ProvedLine */

const PROOFS = /** @type {Record<string, string>} */ ({
  verified: "verified", after_checkpoint: "verified, not signed yet", mismatch: "was changed", unknown: "not verified",
});

export class Story {
  about = signal(/** @type {AgentSession | null} */ (null));
  lines = signal(/** @type {ProvedLine[]} */ ([]));
  error = signal("");
  next = signal(/** @type {number | null} */ (null));
  #filters = /** @type {Record<string, string>} */ ({});
  #pending = new AbortController();

  /** @param {Record<string, string>} filters one is the session */
  async load(filters) {
    this.#filters = filters;
    await this.#page([], null);
  }

  async more() {
    await this.#page(this.lines.peek(), this.next.peek());
  }

  /** @param {ProvedLine[]} known @param {number | null} after */
  async #page(known, after) {
    this.#pending.abort();
    const { signal } = (this.#pending = new AbortController());
    try {
      const page = await get(`activity/story?${query({ ...this.#filters, after })}`, signal);
      batch(() => {
        this.about.value = page.session;
        this.lines.value = [...known, ...page.lines];
        this.next.value = page.next;
        this.error.value = "";
      });
    } catch (error) {
      if (!signal.aborted) this.error.value = errorText(error);
    }
  }

  /** @returns {Row[]} */
  get rows() {
    return this.lines.value.map((line) => ({ kind: "line", line, inner: false }));
  }
}

/** @param {Story} story @param {() => string} chosen */
export function storyView(story, chosen) {
  return h("div", { class: "story-box", tabindex: "0", role: "region", "aria-label": "The session" },
    () => (story.error.value ? h("p", { class: "error", role: "alert" }, prose(story.error.value)) : null),
    () => (story.about.value ? heading(story.about.value) : story.error.value ? null : h("p", { class: "note" }, "Loading …")),
    h("ol", { class: "story-lines" }, keyed(() => story.lines.value.map(({ n, outcome }) => `${n} ${outcome}`).join(),
      () => story.lines.peek().map((line, at) => lineView(line, at, chosen)))),
    () => (story.next.value === null ? null
      : h("button", { class: "small", onclick: () => void story.more() }, "Later calls")));
}

/** @param {AgentSession} about */
function heading({ actor_name: name, client, started_at: began, ended_at: ended, calls, writes, denied }) {
  const copy = async () => {
    await navigator.clipboard.writeText(location.href.replace(/&?line=[^&]*/, ""));
    tell("The link is copied. Its reader must sign in first.");
  };
  return h("header", { class: "story-head" },
    h("h2", {}, isolated(name || "server"), client ? [" with ", isolated(client)] : null),
    h("p", { class: "note" }, timeNode(began, true), " – ", timeNode(ended, true), `: ${counted(calls, "call")}`,
      writes ? `, ${counted(writes, "write")}` : "", denied ? `, ${number(denied)} denied` : ""),
    h("p", {}, h("button", { class: "small", onclick: () => void copy() }, "Copy the link"), " ",
      h("a", { href: addressWith({ session: "", line: "" }) }, "All sessions")));
}

/** @param {ProvedLine} line @param {number} at @param {() => string} chosen */
function lineView(line, at, chosen) {
  const source = session.peek()?.sources.find(({ name }) => name === line.source);
  const href = addressWith({ line: lineName(line) });
  return h("li", { id: `line-${at}` }, h("a", {
    class: "story-line", href, "aria-current": () => (chosen() === lineName(line) ? "true" : null),
    onclick: (/** @type {Event} */ event) => (event.preventDefault(), go(addressWith({ line: lineName(line) }))),
  },
    h("span", { class: "story-top" }, timeNode(line.time, true),
      h("span", { class: `outcome o-${line.outcome.replace(/[^a-z]/g, "")}` }, visible(line.outcome)),
      source ? sourceChip(source) : line.source ? isolated(line.source) : null,
      h("span", { class: "effect" }, visible(line.effect)),
      line.rows === null ? null : h("span", { class: "note" }, counted(line.rows, "row"))),
    line.statement ? h("code", {}, visible(line.statement)) : h("span", {}, isolated(line.tool || line.request)),
    line.message ? h("span", { class: "error" }, prose(line.message)) : null,
    h("span", { class: "note" }, line.rule ? ["Rule ", h("code", {}, visible(line.rule)), ": ", visible(line.verdict),
      line.approval && line.outcome !== "asked" ? ", by a person" : "", ". "] : null,
      h("span", { class: `p-${line.proof.state.replace(/[^a-z_]/g, "")}`, title: line.proof.text },
        icon(line.proof.state === "mismatch" ? "warning" : "check"), PROOFS[line.proof.state] ?? visible(line.proof.state)))));
}
