/** The worker that arranges diagrams, as the page asks it. */

/** @typedef {import("./diagram_contract.js").Size} Size */
/** @typedef {import("./diagram_contract.js").Spot} Spot */

const OWN = new URL("./diagram_worker.js", import.meta.url).href;
/** @type {any} the browser's, or nothing where there is none */
const types = /** @type {any} */ (globalThis).trustedTypes;
/** The one policy of the page: it admits the address of the one worker there is, and no other. */
const policy = types?.createPolicy("tidegate-worker", { createScriptURL: (/** @type {string} */ address) => {
  if (address !== OWN) throw new TypeError(`${address} is no worker of this page`);
  return address;
} });

export class Places {
  /** @type {Worker | null} */
  #worker = null;
  /** @type {Map<number, { done: (spots: Spot[]) => void, failed: (error: Error) => void }>} */
  #waiting = new Map();
  #asked = 0;

  /** Places for tables; those in `kept` stay. @param {Size[]} sizes @param {[number, number][]} links
   * @param {(Spot | null)[]} kept @returns {Promise<Spot[]>} */
  find(sizes, links, kept) {
    if (sizes.length === 0) return Promise.resolve([]);
    const worker = (this.#worker ??= this.#start());
    const id = (this.#asked += 1);
    return new Promise((done, failed) => {
      this.#waiting.set(id, { done, failed });
      worker.postMessage({ id, sizes, links, kept });
    });
  }

  #start() {
    const worker = new Worker(policy ? policy.createScriptURL(OWN) : OWN, { type: "module" });
    worker.onmessage = ({ data }) => {
      this.#waiting.get(data.id)?.done(data.spots);
      this.#waiting.delete(data.id);
    };
    worker.onerror = () => {
      for (const { failed } of this.#waiting.values()) failed(new Error("The tables could not be arranged: load the page again."));
      this.end();
    };
    return worker;
  }

  end() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#waiting.clear();
  }
}
