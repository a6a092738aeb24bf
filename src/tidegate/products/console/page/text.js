/** Text as it is shown: marks for characters that hide or reorder others, times, numbers. */

import { h } from "./dom.js";
import { signal } from "./signals.js";

// What would be invisible, reorder text, or look like a plain space.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680" +
    "\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000" +
    "\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ud800-\\udfff\\ue000-\\uf8ff" +
    "\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\u{f0000}-\\u{10ffff}]",
  "gu",
);
const PICTURE = /\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]*$/u;
const KEYCAP = /[0-9#*]$/;
const NAMES = /** @type {Record<string, string>} */ ({
  "200b": "zero width space", "200d": "zero width joiner", "200e": "left-to-right mark",
  "200f": "right-to-left mark", "202a": "left-to-right embedding",
  "202b": "right-to-left embedding", "202c": "pop directional formatting",
  "202d": "left-to-right override", "202e": "right-to-left override",
  "2066": "left-to-right isolate", "2067": "right-to-left isolate",
  "2068": "first strong isolate", "2069": "pop directional isolate",
  "00a0": "no-break space", "00ad": "soft hyphen", feff: "byte order mark",
});

const ANY_HIDDEN = new RegExp(HIDDEN.source, "u");

/** Whether a text has characters that `visible` may show as marks. @param {string} text */
export const hides = (text) => ANY_HIDDEN.test(text);

/** The text with a mark in place of each character that hides or reorders others.
 * @param {string} text @returns {(string | Node)[]} */
export function visible(text) {
  const parts = /** @type {(string | Node)[]} */ ([]);
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (belongsToPicture(text, match.index, match[0])) continue;
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(mark(match[0]));
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** Where a text has characters that hide or reorder others: the first of them.
 * @param {string} text @param {number} [most] */
export function hiddenIn(text, most = 100) {
  const places = /** @type {number[]} */ ([]);
  for (const match of text.matchAll(HIDDEN)) {
    if (belongsToPicture(text, match.index, match[0])) continue;
    places.push(match.index);
    if (places.length >= most) break;
  }
  return places;
}

/** Joiners and selectors of an emoji are part of its picture.
 * @param {string} text @param {number} place @param {string} found */
function belongsToPicture(text, place, found) {
  const before = text.slice(Math.max(0, place - 16), place);
  if (found === "\ufe0f") return PICTURE.test(before) || KEYCAP.test(before);
  return found === "\u200d" && PICTURE.test(before) &&
    /^\p{Extended_Pictographic}/u.test(text.slice(place + 1, place + 3));
}

/** @param {string} character */
function mark(character) {
  const code = /** @type {number} */ (character.codePointAt(0)).toString(16).padStart(4, "0");
  const name = NAMES[code] ?? "a character that is not visible";
  return h("span", { class: "mark", title: `U+${code.toUpperCase()}: ${name}` },
    `U+${code.toUpperCase()}`);
}

/** A sentence of the server, such as what an error says and advises: what is between backticks is
 * code. @param {string} text @returns {(string | Node)[]} */
export const prose = (text) => text.split(/`([^`\n]+)`/).flatMap((part, index) =>
  (index % 2 ? [h("code", {}, visible(part))] : visible(part)));

/** A name or a value among our own words: its direction stays inside. @param {string} text */
export const isolated = (text) => h("bdi", {}, visible(text));

/** The class of a source's color. One that was chosen, after the twelve that names give, is seen from
 * afar. @param {{ color: number }} source */
export function colorClass({ color }) {
  const number = Math.abs(Math.trunc(color)) % 21;
  return number < 12 ? `c${number}` : `c${number} chosen-color`;
}

/** A value of a table. @param {import("./contract.js").Cell | undefined} value */
export function cell(value) {
  if (value === null || value === undefined) return h("span", { class: "null" }, "NULL");
  if (value === "") return h("span", { class: "null" }, "empty text");
  return h("bdi", {}, visible(value));
}

/** The server's time in Unix seconds, changed every ten seconds. */
export const clock = signal(Date.now() / 1000);
let offset = 0;

/** @param {number} now the server's time */
export function setClock(now) {
  offset = now - Date.now() / 1000;
  clock.value = now;
}
/** The server's time now, in Unix seconds. */
export const serverTime = () => Date.now() / 1000 + offset;
setInterval(() => (clock.value = Date.now() / 1000 + offset), 10_000);

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** @param {number} at Unix seconds @param {boolean} [exact] */
export function when(at, exact = false) {
  const [date, today] = [new Date(at * 1000), new Date(clock.peek() * 1000)];
  const time = (exact ? SECONDS : TIME).format(date);
  if (date.toDateString() === today.toDateString()) return time;
  return `${(date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date)}, ${time}`;
}

/** @param {number} at @param {boolean} [exact] */
export const timeNode = (at, exact = false) => h("time",
  { datetime: new Date(at * 1000).toISOString(), title: new Date(at * 1000).toString() },
  when(at, exact));

/** @param {number} at */
export function ago(at) {
  const passed = Math.max(0, clock.value - at);
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h`;
  return `${Math.floor(passed / 86400)} d`;
}

const NUMBER = new Intl.NumberFormat("en");

/** @param {number} value */
export const number = (value) => NUMBER.format(value);

/** "1 row", "3 rows". @param {number} count @param {string} noun */
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
