/** What can be done where one is: parts of a page offer it, and Ctrl K finds it. */

import { onEnd } from "./signals.js";

/** @typedef {{ label: string, keys?: string, run: () => void }} Action */

/** @type {Set<() => Action[]>} */
const offers = new Set();

/** Offer actions for as long as what is built now is there. They are read when they are looked for,
 * so that none is offered where it does nothing. @param {() => Action[]} read */
export function offer(read) {
  offers.add(read);
  onEnd(() => offers.delete(read));
}

/** All that can be done now. @returns {Action[]} */
export const offered = () => [...offers].flatMap((read) => read());
