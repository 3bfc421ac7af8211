// The search dialog: the server renders the results, the arrow keys choose one, and Enter opens it.
import { _ } from "./messages.js";
const QUIET_MS = 120;
const finder = document.getElementById("finder");
const input = finder.querySelector("input");
const results = document.getElementById("finder-results");
let waiting = 0;
let latest = null;

/** Open the dialog with every page and action. */
export function openFinder() {
  if (document.querySelector("dialog[open]")) return;
  input.value = "";
  finder.showModal();
  find();
}

async function find() {
  const asked = (latest = new AbortController());
  try {
    const response = await fetch(`/dashboard/search/results?q=${encodeURIComponent(input.value.slice(0, 200))}`, { signal: asked.signal });
    // A session that has ended is answered by the page to sign in.
    if (!response.ok || response.redirected) return finder.querySelector("form").submit();
    results.innerHTML = await response.text();
    choose(results.querySelector("a"));
  } catch (error) {
    if (error.name !== "AbortError") results.textContent = _("The server cannot be reached.");
  }
}

function choose(option) {
  for (const chosen of results.querySelectorAll("[aria-selected=true]")) chosen.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", option?.id ?? "");
}

function move(step) {
  const options = [...results.querySelectorAll("a")];
  const place = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (options.length) choose(options[(place + step + options.length) % options.length]);
}

input.addEventListener("input", () => {
  latest?.abort();
  clearTimeout(waiting);
  waiting = setTimeout(find, QUIET_MS);
});

input.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) {
    event.preventDefault();
    move(steps[event.key]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    results.querySelector("[aria-selected=true]")?.click();
  }
});

finder.addEventListener("click", (event) => {
  if (event.target === finder) finder.close();
});

for (const link of document.querySelectorAll("[data-find]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    openFinder();
  });
}
