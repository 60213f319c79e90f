/**
 * Addresses of views, in the part behind `#`: `#/flows/east-%3Ewest/topics`. They can be kept, sent and gone back to.
 */

/** The address of a view, each part escaped. */
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** Parts of the current address; what is no address of ours (`#content`) counts as the front. */
export function currentParts() {
  const hash = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  try {
    return hash.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return []; // a broken escape
  }
}
