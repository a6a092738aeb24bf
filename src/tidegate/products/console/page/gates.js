/** What pages say of the gates whose records they show. */

import { h } from "./dom.js";
import { isolated } from "./text.js";

/** @typedef {import("./contract.js").GatesOfPage} GatesOfPage */

const WHY = {
  silent: "does not answer", failed: "cannot read its record", gone: "does not run; its record is in its directory",
};

/** @param {string} name @param {string} [gate] */
export const atGate = (name, gate) => (gate ? `${name}@${gate}` : name);

/** What names a line in an address: its call, which another build of the index knows as well, and the
 * gate that has it, where several share the state.
 * @param {import("./contract.js").Line} line */
export const lineName = ({ call_id, n, gate }) => atGate(call_id || String(n), gate);

/** Which gate a line is of, where there are several. @param {GatesOfPage} of @param {string} [gate] */
export const gateName = ({ gates, missing }, gate) => (gate && (Object.keys(gates).length > 1 || missing.length)
  ? h("span", { class: "gate", title: `Answered by the gate ${gate}` }, isolated(gates[gate] ?? gate)) : null);

/** Gates by name, each with why it has not answered. @param {GatesOfPage["missing"]} missing */
export const missingNames = (missing) =>
  missing.map(({ name, why }, at) => [at ? ", " : "", isolated(name), ` (${WHY[why] ?? "does not answer"})`]);

/** @param {GatesOfPage["missing"]} missing */
export const missingGates = (missing) => (missing.length
  ? h("p", { class: "note missing-gates", role: "status" }, "Calls at other gates are missing here: ", missingNames(missing), ".")
  : null);
