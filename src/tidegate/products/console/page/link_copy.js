/** Put an address of this console on the clipboard; where that is not allowed, show it. */

import { h } from "./dom.js";
import { ask } from "./dialogs.js";
import { tell } from "./state.js";

/** @param {string} hash as `links.js` writes it */
export async function copyLink(hash) {
  const address = `${location.origin}${location.pathname}${hash}`;
  try {
    await navigator.clipboard.writeText(address);
    tell("The link is copied.");
  } catch {
    const field = h("input", { id: "link-address", readonly: true, value: address, onfocus: () => field.select() });
    await ask({ title: "Link", action: "Done", read: () => true,
      body: [h("label", { for: "link-address" }, "Copy this address"), field] });
  }
}
