/** Requests to the server. The page's secret is in the memory of this module alone. */

const BASE = "/console/api/";
let page = "";
let signedOut = () => {};

/** @param {string} secret @param {() => void} onSignedOut called when the session is over */
export function useSession(secret, onSignedOut) {
  page = secret;
  signedOut = onSignedOut;
}

const KEY = "tidegate.key";

/** Keep the key of this browser, which no other port of this machine can read, to load the page again.
 * @param {string} [key] */
export const keepKey = (key) => { if (key) localStorage.setItem(KEY, key); };
export const dropKey = () => localStorage.removeItem(KEY);

/** The session that this browser has. @returns {Promise<import("./contract.js").Session>} */
export function resume() {
  const key = localStorage.getItem(KEY);
  return post("session", key ? { key } : {});
}

/** What the server refused, or that it was not reached (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {Record<string, any>} body @param {number} [retryAfter] */
  constructor(status, body, retryAfter = 0) {
    super(String(body.message ?? `The server answered ${status}.`));
    this.status = status;
    this.code = String(body.error ?? "");
    this.hint = String(body.hint ?? "");
    this.body = body;
    this.retryAfter = retryAfter;
  }

  /** Message and hint for a person. */
  get text() {
    const wait = this.retryAfter ? `Try again in ${this.retryAfter} s.` : "";
    return [this.message, this.hint, wait].filter(Boolean).join(" ");
  }
}

/** @param {unknown} error */
export const errorText = (error) => (error instanceof ApiError ? error.text : String(error));

const TRIES = 3;

/** @param {string} path @param {RequestInit} [init] @param {number} [tries] of a request that the balancer has not
 * brought to the gate that has this page, and that was not run */
export async function request(path, init = {}, tries = TRIES) {
  const headers = new Headers(init.headers);
  if (page) headers.set("x-tidegate-page", page);
  /** @type {Response} */
  let response;
  try {
    response = await fetch(BASE + path, { ...init, headers, cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, {
      error: "page.unreachable", message: "The server does not answer.",
      hint: "Check that it runs: tidegate status.",
    });
  }
  if (response.ok) return response;
  if (response.status === 421 && tries > 1) return request(path, init, tries - 1);
  const text = await response.text();
  /** @type {Record<string, any>} */
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    body = {};
  }
  if (response.status === 401 && body.error === "console.signed_out") signedOut();
  throw new ApiError(response.status, body, Number(response.headers.get("retry-after") ?? 0));
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = async (path, signal) => (await request(path, { signal })).json();

/** @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function post(path, body, signal) {
  const response = await request(path, {
    method: "POST", signal,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

/** @param {Record<string, string | number | null | undefined>} fields */
export function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value != null);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}
