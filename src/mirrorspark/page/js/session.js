/**
 * Who asks: nobody, unless the server wants a name. Then it is asked for once and kept for this tab (sessionStorage), never
 * longer, and goes out in the Authorization header only.
 */

import { setText } from "./dom.js";

const KEY = "mirrorspark.authorization";

let inMemory = null;
let asking = null;

export function authorization() {
  try {
    return sessionStorage.getItem(KEY) ?? inMemory;
  } catch {
    return inMemory; // a browser may forbid storage
  }
}

function keep(value) {
  inMemory = value;
  try {
    if (value === null) {
      sessionStorage.removeItem(KEY);
    } else {
      sessionStorage.setItem(KEY, value);
    }
  } catch {
    // see above; in memory it is
  }
  document.getElementById("sign-out").hidden = value === null;
}

export function signOut() {
  keep(null);
  location.reload();
}

/** Asks once, however many requests were refused at the same time. Resolves when there is a new name to try. */
export function askWho(refused) {
  if (refused !== authorization()) {
    return Promise.resolve(); // somebody has answered meanwhile
  }
  asking ??= question(refused !== null).finally(() => {
    asking = null;
  });
  return asking;
}

function question(wasWrong) {
  const dialog = document.getElementById("who");
  const form = dialog.querySelector("form");
  setText(dialog.querySelector("[role=alert]"), wasWrong ? "The server does not know this name, password or token." : "");
  return new Promise((resolve) => {
    const answer = (event) => {
      event.preventDefault();
      const header = headerOf(new FormData(form));
      if (header === null) {
        return;
      }
      form.removeEventListener("submit", answer);
      keep(header);
      form.reset();
      dialog.close();
      resolve();
    };
    form.addEventListener("submit", answer);
    dialog.showModal();
  });
}

function headerOf(fields) {
  const token = fields.get("token").trim();
  const user = fields.get("user");
  if (token) {
    return `Bearer ${token}`;
  }
  return user ? `Basic ${base64(`${user}:${fields.get("password")}`)}` : null;
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** Call once, when the document is there. */
export function prepareSession() {
  document.getElementById("sign-out").hidden = authorization() === null;
  document.getElementById("sign-out").addEventListener("click", signOut);
  // Without a name there is nothing to show: Escape must not leave a page that looks empty. A second one in a row cannot be
  // prevented, so the question comes back.
  const dialog = document.getElementById("who");
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => asking !== null && dialog.showModal());
}
