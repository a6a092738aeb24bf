/** Signals: values that know who reads them, and work that runs again when they change. */

/** @typedef {() => void} Stop */
/** @typedef {{ run: Stop, seen: Set<Set<Observer>>, owned: Stop[], ended: boolean }} Observer */

/** @type {Observer | null} */
let reader = null;
/** @type {Stop[] | null} */
let owner = null;
/** @type {Set<Observer>} */
const queue = new Set();
let held = 0;

/** A value that knows who reads it. @template T */
export class Signal {
  /** @type {Set<Observer>} */
  #observers = new Set();
  /** @type {T} */
  #value;

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  get value() {
    if (reader) {
      this.#observers.add(reader);
      reader.seen.add(this.#observers);
    }
    return this.#value;
  }

  set value(next) {
    if (Object.is(next, this.#value)) return;
    this.#value = next;
    for (const observer of this.#observers) queue.add(observer);
    flush();
  }

  /** The value, without becoming one of its readers. */
  peek() {
    return this.#value;
  }
}

/** @template T @param {T} value @returns {Signal<T>} */
export const signal = (value) => new Signal(value);

function flush() {
  if (held) return;
  held += 1;
  try {
    for (const observer of queue) {
      queue.delete(observer);
      if (!observer.ended) observer.run();
    }
  } finally {
    held -= 1;
  }
}

/** Change several signals, and let their readers run once. @param {Stop} change */
export function batch(change) {
  held += 1;
  try {
    change();
  } finally {
    held -= 1;
  }
  flush();
}

/** Run now and after each change of what was read. @param {Stop} work @returns {Stop} */
export function effect(work) {
  const clear = () => {
    for (const stop of observer.owned.splice(0)) stop();
    for (const observers of observer.seen) observers.delete(observer);
    observer.seen.clear();
  };
  /** @type {Observer} */
  const observer = { seen: new Set(), owned: [], ended: false, run: () => {
    clear();
    scoped(observer, observer.owned, work);
  } };
  const stop = () => {
    observer.ended = true;
    clear();
  };
  owner?.push(stop);
  observer.run();
  return stop;
}

/** @template T @param {Observer | null} reads @param {Stop[] | null} owns @param {() => T} work */
function scoped(reads, owns, work) {
  const before = /** @type {const} */ ([reader, owner]);
  [reader, owner] = [reads, owns];
  try {
    return work();
  } finally {
    [reader, owner] = before;
  }
}

/** Run without becoming a reader of anything. @template T @param {() => T} work */
export const untracked = (work) => scoped(null, owner, work);

/** Run with an end of its own: what is built inside lives until the returned function is called.
 * @template T @param {() => T} work @returns {[T, Stop]} */
export function root(work) {
  /** @type {Stop[]} */
  const owned = [];
  return [scoped(null, owned, work), () => owned.splice(0).forEach((stop) => stop())];
}

/** Call this when what is built now is thrown away. @param {Stop} stop */
export const onEnd = (stop) => void owner?.push(stop);

/** A signal that is computed. @template T @param {() => T} read @returns {Signal<T>} */
export function computed(read) {
  /** @type {Signal<T>} */
  const result = signal(/** @type {T} */ (undefined));
  effect(() => {
    result.value = read();
  });
  return result;
}
