/** Sign in, by name and passphrase. A link's secret is redeemed before this page is shown. */

import { errorText, post } from "./api.js";
import { h } from "./dom.js";
import { signal } from "./signals.js";
import { prose } from "./text.js";

/** @typedef {import("./contract.js").Session} Session */

/** @param {string} notice why one has to sign in @param {(session: Session) => void} signedIn */
export function signInView(notice, signedIn) {
  const error = signal("");
  const busy = signal(false);
  const name = h("input", {
    id: "name", name: "username", autocomplete: "username", required: true, spellcheck: "false",
    autocapitalize: "none",
  });
  const passphrase = h("input", {
    id: "secret", name: "password", type: "password", autocomplete: "current-password", required: true,
  });
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    if (busy.peek()) return;
    [busy.value, error.value] = [true, ""];
    try {
      signedIn(await post("sign-in", { name: name.value, passphrase: passphrase.value }));
    } catch (caught) {
      error.value = errorText(caught);
      passphrase.value = "";
      passphrase.focus();
    } finally {
      busy.value = false;
    }
  };
  return h("main", { class: "sign-in" },
    h("form", { onsubmit: submit, "aria-labelledby": "sign-in-title" },
      h("div", { class: "brand" }, "Tidegate"),
      h("h1", { id: "sign-in-title" }, "Sign in"),
      notice ? h("p", { class: "notice", role: "status" }, prose(notice)) : null,
      h("label", { for: "name" }, "Name"), name,
      h("label", { for: "secret" }, "Passphrase"), passphrase,
      () => (error.value ? h("p", { class: "error", role: "alert" }, prose(error.value)) : null),
      h("button", { class: "primary", type: "submit", "aria-disabled": () => String(busy.value) }, "Sign in"),
      h("p", { class: "note" }, "Or open a link that signs you in: where the server runs, ", h("code", {}, "tidegate console"), " makes one.")));
}
