/**
 * Dark or light: as the system has it, unless somebody chose. The choice is the only thing that outlives the tab.
 * Loaded in the document's head, before anything is drawn, hence no module.
 */
"use strict";

(() => {
  const KEY = "mirrorspark.colours";
  const CHOICES = ["system", "light", "dark"];

  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return CHOICES.includes(kept) ? kept : "system";
    } catch {
      return "system"; // a browser may forbid storage; then the choice lasts as long as the page
    }
  }

  function apply(choice) {
    document.documentElement.dataset.colours = choice;
    document.dispatchEvent(new Event("colours"));
  }

  function choose(choice) {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // see above
    }
    apply(choice);
  }

  apply(chosen());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    apply(document.documentElement.dataset.colours);
  });
  addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("colours");
    select.value = chosen();
    select.addEventListener("change", () => choose(select.value));
  });
})();
