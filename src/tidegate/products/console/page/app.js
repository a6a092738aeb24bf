/** The console: sign in, the rail, the pages, what is live. */

import { offer } from "./actions.js";
import { ApiError, dropKey, errorText, keepKey, post, resume, useSession } from "./api.js";
import { showKeys } from "./dialogs.js";
import { fetchNeeds, h, keyed } from "./dom.js";
import { icon } from "./icons.js";
import { inboxView } from "./inbox.js";
import { Feed, live } from "./live.js";
import { openPalette } from "./palette.js";
import { signInView } from "./sign_in.js";
import { computed, effect, root, signal } from "./signals.js";
import {
  cards, go, listen, newestLines, pairings, passOn, route, say, session, silentGates, tabNotice, theme,
} from "./state.js";
import { isolated, prose, setClock, visible, when } from "./text.js";

/** @typedef {import("./contract.js").Session} Session */

const PAGES = /** @type {const} */ ([
  ["inbox", "Inbox"], ["activity", "Activity"], ["data", "Data"], ["access", "Access"],
  ["now", "Now"],
]);
const place = /** @type {HTMLElement} */ (document.getElementById("app"));
const BUILD = document.querySelector('meta[name="tidegate-build"]')?.getAttribute("content") ?? "";

const newBuild = signal(false);
const trouble = signal("");
/** @type {Feed | null} */
let feed = null;
let endShown = () => {};

/** Show one view in the place of all. @param {() => Node} view */
function show(view) {
  endShown();
  const [node, stop] = root(view);
  place.replaceChildren(node);
  endShown = stop;
}

/** The secret of a sign-in link, taken out of the address at once. */
function takeLink() {
  const found = /^#sign-in=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", "#/inbox");
  route.value = { page: "inbox", id: "", query: new URLSearchParams() };
  return decodeURIComponent(found[1]);
}

/** @param {string} notice */
function signOut(notice) {
  feed?.stop();
  feed = null;
  useSession("", () => {});
  session.value = null;
  cards.clear();
  pairings.value = [];
  tabNotice.value = null;
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  document.title = "Sign in – Tidegate";
  show(() => signInView(notice, (found) => void start(found)));
  document.getElementById("name")?.focus();
}

/** @param {Session} found */
async function start(found) {
  feed?.stop();
  useSession(found.page, onEnd);
  keepKey(found.key);
  setClock(found.now);
  session.value = found;
  newBuild.value = Boolean(BUILD && !BUILD.startsWith("{{") && BUILD !== found.build);
  show(shell);
  try {
    const after = await cards.load();
    if (session.peek()?.page !== found.page) return;
    feed = new Feed(`tidegate-${found.instance}-${found.operator.name}`, after, receive);
  } catch (error) {
    trouble.value = errorText(error);
  }
}

/** Ask again for what this operator may see: after a gap, and after a change of roles. */
async function refresh() {
  const found = await resume();
  useSession(found.page, onEnd);
  session.value = found;
  await cards.load();
  passOn({ seq: 0, name: "refreshed", data: {} });
}

const onEnd = () => signOut("Your session has ended. Sign in to go on.");

/** @param {import("./live.js").LiveEvent} event */
function receive(event) {
  const { name, data } = event;
  passOn(event);
  if (name === "hello") {
    setClock(data.now);
    silentGates.value = [];
    if (session.peek() && data.build !== session.peek()?.build) newBuild.value = true;
  } else if (name === "reload") {
    refresh().catch((error) => (trouble.value = errorText(error)));
  } else if (name === "line") {
    newestLines.value = { ...newestLines.peek(), [data.gate ?? ""]: Number(data.n) };
  } else if (name === "gates") {
    silentGates.value = data.silent;
  } else if (name === "pairing") {
    const known = new Set(pairings.peek().map(({ id }) => id));
    for (const asked of data.pairings) {
      if (!known.has(asked.id)) say(`${asked.client} asks for a token.`);
    }
    pairings.value = data.pairings;
  } else if (name === "end") {
    feed?.stop();
    void enter(null, String(data.reason || "Your session has ended. Sign in to go on."));
  } else {
    const waits = name === "card" && data.state === "pending" && !cards.all.peek().has(data.id);
    cards.receive(event);
    if (waits && data.may.allow) say(`A question: ${data.sentence}`);
  }
}

/** Offer the tab that an agent opened; Data itself decides while it is in front.
 * @param {import("./data_contract.js").TabEvent} event */
function noticeTab(event) {
  const shows = event.action === "opened" || event.action === "focused";
  if (event.by && shows && route.peek().page !== "data") tabNotice.value = event;
  else if (event.action === "closed" && tabNotice.peek()?.tab.id === event.tab.id) tabNotice.value = null;
}

/** Find the session, or make one of a link. @param {string | null} link @param {string} [notice] */
async function enter(link, notice = "") {
  try {
    await start(link ? await post("sign-in", { link }) : await resume());
  } catch (error) {
    if (link && error instanceof ApiError && error.status) signOut(errorText(error));
    else if (error instanceof ApiError && error.status === 401) signOut(notice);
    else show(() => unreachable(errorText(error), link));
  }
}

/** @param {string} text @param {string | null} link */
const unreachable = (text, link) => h("main", { class: "sign-in" },
  h("div", { class: "box" }, h("h1", {}, "Tidegate"), h("p", { class: "error", role: "alert" }, prose(text)),
    h("button", { class: "primary", onclick: () => void enter(link) }, "Try again")));

/** @param {boolean} everywhere */
async function leave(everywhere) {
  try {
    await post("sign-out", { everywhere });
    dropKey();
    signOut("You are signed out.");
  } catch (error) {
    trouble.value = errorText(error);
  }
}

// What this operator may not answer is shown, and does not ask for an answer.
const waiting = computed(() => cards.pending.filter(({ may }) => may.allow).length);

/** @param {() => number} read */
const countOf = (read) => () => (read()
  ? h("span", { class: "count" }, h("span", { class: "sr" }, "waiting: "), read()) : null);

function shell() {
  effect(() => {
    const name = PAGES.find(([page]) => page === route.value.page)?.[1] ?? "Not found";
    document.title = `${waiting.value ? `(${waiting.value}) ` : ""}${name} – Tidegate`;
  });
  offer(() => [
    { label: "Keys", run: () => void showKeys() },
    { label: "Sign out", run: () => void leave(false) },
    { label: "Sign out everywhere", run: () => void leave(true) },
  ]);
  return h("div", { class: "shell" },
    h("nav", { class: "rail", "aria-label": "Pages" },
      h("a", { class: "skip", href: "#/inbox", onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      } }, "Skip to the page"),
      h("div", { class: "brand", "aria-hidden": "true" }, "Tidegate"),
      PAGES.map(([page, label]) => h("a", {
        href: `#/${page}`, "aria-current": () => (route.value.page === page ? "page" : null),
      }, icon(page), h("span", {}, label),
        page === "inbox" ? countOf(() => waiting.value)
          : page === "access" ? countOf(() => pairings.value.length) : null)),
      h("div", { class: "rail-end" }, liveDot(), me())),
    h("main", { id: "main", tabindex: "-1" }, bars(),
      keyed(() => route.value.page, () => page(route.peek().page))));
}

/** @param {string} name */
function page(name) {
  if (name === "inbox") return inboxView();
  const loaders = /** @type {Record<string, () => Promise<() => Node>>} */ ({
    activity: async () => (await import("./activity.js")).activityView,
    data: async () => (await import("./data.js")).dataView(),
    now: async () => (await import("./now.js")).nowView(),
    access: async () => (await import("./access.js")).accessView(),
  });
  if (!loaders[name]) {
    return h("div", { class: "empty" }, h("h1", {}, "There is no such page"),
      h("p", {}, h("a", { href: "#/inbox" }, "Go to the Inbox")));
  }
  const loaded = signal(/** @type {(() => Node) | null} */ (null));
  fetchNeeds(`${name}.js`);
  loaders[name]().then((view) => (loaded.value = view), () => (newBuild.value = true));
  return h("div", { class: "page" }, keyed(() => loaded.value !== null,
    () => (loaded.peek() ? /** @type {() => Node} */ (loaded.peek())() : h("p", { class: "empty" }, "Loading …"))));
}

function bars() {
  return h("div", { class: "bars" },
    () => (session.value?.invited && route.value.page !== "access"
      ? h("div", { class: "bar", role: "status" }, "You have no passphrase yet. ",
        h("a", { href: "#/access" }, "Choose one")) : null),
    () => (newBuild.value
      ? h("div", { class: "bar", role: "status" }, "Tidegate has been updated. ",
        h("button", { class: "small", onclick: () => location.reload() }, "Load the new page")) : null),
    () => (trouble.value
      ? h("div", { class: "bar bad", role: "alert" }, prose(trouble.value), " ",
        h("button", { class: "small", onclick: () => {
          trouble.value = "";
          void enter(null);
        } }, "Try again")) : null),
    () => (!live.value.ok && live.value.since !== null
      ? h("div", { class: "bar bad", role: "status" }, `Not live since ${when(live.value.since)}. `,
        "Allow waits until the page is live again.") : null),
    () => (tabNotice.value ? tabBar(tabNotice.value) : null));
}

/** @param {import("./data_contract.js").TabEvent} event */
const tabBar = ({ tab, action, by }) => h("div", { class: "bar", role: "status" },
  h("span", {}, isolated(by), action === "opened" ? " opened " : " went to ", isolated(tab.title), " on ",
    isolated(tab.source), "."),
  h("button", { class: "small", onclick: () => {
    tabNotice.value = null;
    go(`#/data?tab=${encodeURIComponent(tab.id)}`);
  } }, "Show"),
  h("button", { class: "small quiet", onclick: () => (tabNotice.value = null) }, "Dismiss"));

const liveDot = () => h("div", { class: () => `live ${live.value.ok ? "on" : "off"}` },
  h("span", { class: "dot", "aria-hidden": "true" }),
  h("span", {}, () => (live.value.ok ? "Live" : live.value.since === null ? "Connecting" : "Not live")));

function me() {
  const operator = session.peek()?.operator;
  const roles = () => (session.value?.operator.roles ?? []).map(({ role, sources }) =>
    h("li", {}, role, sources ? [" of ", visible(sources.join(", "))] : " of all sources"));
  const menu = h("div", { class: "menu", popover: "auto", id: "me" },
    h("ul", { class: "plain" }, roles),
    h("label", { for: "look" }, "Look"),
    h("select", { id: "look", onchange: (/** @type {Event} */ event) => {
      theme.value = /** @type {any} */ (event.target).value;
    } }, [["auto", "as the system"], ["light", "light"], ["dark", "dark"]].map(([value, label]) =>
      h("option", { value, selected: theme.value === value }, label))),
    h("button", { onclick: () => (menu.hidePopover(), openPalette()) }, "Go to … (Ctrl K)"),
    h("button", { onclick: () => (menu.hidePopover(), void showKeys()) }, icon("keys"), "Keys"),
    h("button", { onclick: () => void leave(false) }, "Sign out"),
    h("button", { onclick: () => void leave(true) }, "Sign out everywhere"));
  return [h("button", { class: "me", popovertarget: "me" }, icon("person"),
    h("span", {}, visible(operator?.name ?? ""))), menu];
}

listen("tab", noticeTab);
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || !session.peek()) return;
  event.preventDefault();
  openPalette();
});
addEventListener("hashchange", () => {
  const link = takeLink();
  if (link) void enter(link);
});
// A page that the browser kept while another was open shows what was true then.
addEventListener("pageshow", (event) => event.persisted && location.reload());
place.replaceChildren();
if (PAGES.some(([name]) => name === route.peek().page)) fetchNeeds(`${route.peek().page}.js`);
void enter(takeLink());
