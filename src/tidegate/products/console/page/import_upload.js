/** Sends a file to the server in parts, each as Base64 in JSON: no other page can send such a request. */

import { post } from "./api.js";

const PART = 1_048_576;

/** @param {File} file @param {(share: number) => void} progress hundredths @param {AbortSignal} signal
 * @returns {Promise<import("./import_contract.js").FileImport>} */
export async function upload(file, progress, signal) {
  let found = await post("data/imports", { name: file.name, size: file.size }, signal);
  for (let at = 0; at < file.size; at += PART) {
    const part = await base64(file.slice(at, at + PART));
    found = await post(`data/imports/${found.id}/part`, { at, data: part }, signal);
    progress(Math.floor(Math.min(at + PART, file.size) / file.size * 100));
  }
  return found;
}

/** @param {Blob} blob @returns {Promise<string>} */
function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("The file cannot be read."));
    reader.readAsDataURL(blob);
  });
}
