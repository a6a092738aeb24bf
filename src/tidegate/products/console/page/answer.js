/** Answers to a question: allow, deny, end a grant, put rows back. Each binds what was shown. */

import { ApiError, errorText, get, post } from "./api.js";
import { ask, askPassphrase, askReason, problem } from "./dialogs.js";
import { h } from "./dom.js";
import { tableBox } from "./rows.js";
import { signal } from "./signals.js";
import { cards, say, session } from "./state.js";
import { cell, counted, isolated, number, prose, visible } from "./text.js";

/** @typedef {import("./contract.js").Card} Card */
/** @typedef {import("./contract.js").Change} Change */

/** What went wrong with the last answer, by card. */
export const problems = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));

/** @param {string} id @param {string} text */
function report(id, text) {
  problems.value = new Map(problems.peek()).set(id, text);
  if (text) say(text);
}

/** @param {Card} card */
const path = (card) => `inbox/${encodeURIComponent(card.id)}`;

/** @param {Card} card what was shown @param {unknown} error */
async function explain(card, error) {
  if (error instanceof ApiError && error.status === 409) {
    report(card.id, "The question has changed or was answered. Read it again.");
    await cards.reload(card.id).catch(() => {});
    return;
  }
  report(card.id, errorText(error));
}

/** A passphrase was typed in this session. */
function confirmed() {
  const now = session.peek();
  if (now && !now.confirmed) session.value = { ...now, confirmed: true };
}

/** @param {unknown} error */
const needsPassphrase = (error) => error instanceof ApiError && error.code === "operator.consent";

/** Allow the card as it was shown, for one use or for some minutes.
 * @param {Card} card @param {number} minutes 0 for one use @param {AbortSignal} changed */
export async function allow(card, minutes, changed) {
  report(card.id, "");
  const action = minutes ? `Allow for ${counted(minutes, "minute")}` : "Allow once";
  let wanted = card.may.passphrase;
  let error = "";
  for (;;) {
    /** @type {{ digest: string, passphrase?: string, minutes?: number }} */
    const body = { digest: card.digest };
    if (minutes) body.minutes = minutes;
    if (wanted) {
      const why = [h("strong", {}, visible(card.sentence)), ". ", card.irreversible
        ? "It cannot be taken back, so it needs your passphrase."
        : "This yes needs your passphrase."];
      const passphrase = await askPassphrase({
        title: action, why, action, error, signal: changed,
        kind: card.irreversible ? "danger" : "primary",
      });
      if (changed.aborted) {
        report(card.id, "The question has changed. Read it again.");
        return;
      }
      if (passphrase === null) return;
      body.passphrase = passphrase;
    }
    try {
      cards.put(await post(`${path(card)}/allow`, body));
      if (wanted) confirmed();
      say("Allowed.");
      return;
    } catch (caught) {
      if (!needsPassphrase(caught)) return explain(card, caught);
      error = wanted ? errorText(caught) : "";
      wanted = true;
    }
  }
}

/** @param {Card} card @param {AbortSignal} changed */
export async function deny(card, changed) {
  report(card.id, "");
  const reason = await askReason(changed, card.caller.in_console ? "" : "the agent");
  if (changed.aborted) report(card.id, "The question has changed. Read it again.");
  if (reason === null) return;
  try {
    cards.put(await post(`${path(card)}/deny`, { digest: card.digest, reason }));
    say("Denied.");
  } catch (error) {
    await explain(card, error);
  }
}

/** @param {Card} card */
export async function revoke(card) {
  report(card.id, "");
  try {
    cards.put(await post(`${path(card)}/revoke`, {}));
    say("The grant has ended.");
  } catch (error) {
    await explain(card, error);
  }
}

/** Put the rows of a change back, after showing them.
 * @param {string} changeId @param {string} cardId under which problems are reported
 * @param {boolean} [hasCard] false for a change without a question @returns {Promise<boolean>} */
export async function putBack(changeId, cardId, hasCard = true) {
  report(cardId, "");
  const place = `changes/${encodeURIComponent(changeId)}`;
  let wanted = session.peek()?.confirmed === false;
  let error = "";
  for (;;) {
    try {
      /** @type {Change} */
      const change = await get(place);
      const answer = await askUndo(change, wanted, error);
      if (answer === null) return false;
      const done = await post(`${place}/undo`, wanted ? { passphrase: answer } : {});
      if (wanted) confirmed();
      say(`${counted(done.rows, "row")} put back.`);
      if (hasCard) await cards.reload(cardId).catch(() => {});
      return true;
    } catch (caught) {
      if (needsPassphrase(caught)) {
        error = wanted ? errorText(caught) : "";
        wanted = true;
      } else {
        const keys = caught instanceof ApiError ? caught.body.conflicts : null;
        const rows = Array.isArray(keys) && keys.length ? ` Changed since: ${keys.join(", ")}.` : "";
        report(cardId, errorText(caught) + rows);
        return false;
      }
    }
  }
}

/** @param {Change} change @param {boolean} wanted @param {string} error */
function askUndo(change, wanted, error) {
  const input = h("input", {
    type: "password", id: "undo-passphrase", autocomplete: "current-password", required: true,
  });
  const possible = change.possible && change.conflicts === 0;
  return ask({
    title: "Put these rows back", action: possible ? "Put these rows back" : "Close",
    read: () => (possible ? (wanted ? input.value || null : "yes") : "leave"),
    body: [
      h("p", {}, `${counted(change.count, "row")} on `, isolated(change.source),
        ": all of them, or none."),
      change.tables.map((table) => changedTable(table, change.tables.length > 1)),
      change.conflicts ? conflictsView(change) : null,
      change.reason && !change.conflicts ? h("p", { class: "note" }, prose(change.reason)) : null,
      change.triggers.length
        ? h("p", { class: "note" },
          "Triggers may run again, and what they change in other rows does not go back: ",
          change.triggers.map((name, index) => [index ? ", " : "", isolated(name)]), ".") : null,
      problem(error),
      possible && wanted
        ? [h("label", { for: "undo-passphrase" }, "Your passphrase"), input] : null,
    ],
  }).then((answer) => (answer === "leave" ? null : answer));
}

/** The rows that are no longer as the change left them. @param {Change} change */
function conflictsView({ conflicts, conflict_rows }) {
  const problems = /** @type {Record<string, string>} */ ({
    changed: "was changed since", gone: "is gone", exists: "is there again",
  });
  const left = conflicts - conflict_rows.length;
  return h("div", { class: "error" },
    h("p", {}, `${counted(conflicts, "row")} changed since then, so nothing is put back. Above is how the ` +
      "change left them, not how they are now."),
    h("ul", {}, conflict_rows.map(({ table, key, problem }) => h("li", {}, isolated(table),
      key ? [": ", isolated(key)] : null, " ", visible(problems[problem] ?? problem)))),
    left > 0 && conflict_rows.length ? h("p", {}, `and ${number(left)} more`) : null);
}

/** What becomes of each row: as it is now, and as it would be again.
 * @param {import("./contract.js").ChangedTable} table @param {boolean} named */
function changedTable(table, named) {
  const keys = table.rows.some(({ key }) => key);
  const rows = table.rows.map(({ key, before, after, now }) => {
    const present = now ?? after;
    const cells = table.columns.map((name, place) => {
      if (table.masked.includes(name)) return h("td", { class: "same" }, "***");
      const [is, was] = [present?.[place], before?.[place]];
      const conflict = now && after && now[place] !== after[place];
      if (present && before && is === was) return h("td", { class: "same" }, cell(is));
      return h("td", { class: conflict ? "change conflict" : "change" },
        present ? h("del", { class: "old" }, cell(is)) : null,
        present && before ? h("span", { class: "to" }, " → ") : null,
        before ? h("ins", { class: "new" }, cell(was)) : null);
    });
    return h("tr", {}, keys ? h("th", { scope: "row" }, isolated(key)) : null, cells);
  });
  const left = table.count - table.rows.length;
  return [
    named ? h("h3", {}, isolated(table.table)) : null,
    tableBox(`Rows of ${table.table} now, and as they would be again`,
      h("table", { class: "changes" },
        h("thead", {}, h("tr", {}, keys ? h("th", { scope: "col" }, "Key") : null,
          table.columns.map((name) => h("th", { scope: "col" }, isolated(name))))),
        h("tbody", {}, rows))),
    left > 0 ? h("p", { class: "note" }, `and ${number(left)} more that are not shown here`) : null,
    table.masked.length
      ? h("p", { class: "note" }, "*** replaces values that are put back without being shown.") : null,
  ];
}
