// Shared by every page: the menu and cards of small screens, the theme, confirmations, copying, and live parts.
import "./attention.js";
import { labelCells } from "./cards.js";
import { askFirst } from "./confirm.js";
import { keepLive } from "./live.js";
import { _ } from "./messages.js";

const SENT_MS = 10_000;
const menu = document.querySelector("[data-menu]");
const navigation = document.getElementById("navigation");

function showMenu(open) {
  navigation.classList.toggle("open", open);
  menu.setAttribute("aria-expanded", String(open));
}

if (menu && navigation) {
  menu.addEventListener("click", () => showMenu(!navigation.classList.contains("open")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && navigation.classList.contains("open")) {
      showMenu(false);
      menu.focus();
    }
  });
  document.getElementById("content").addEventListener("click", () => showMenu(false));
}

document.querySelector("[data-select-all]")?.addEventListener("change", ({ target }) => {
  for (const box of document.getElementsByName(target.dataset.selectAll)) box.checked = target.checked;
});

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const button = event.submitter;
  if (!form.dataset.confirm || "confirmed" in form.dataset) return;
  event.preventDefault();
  const isDanger = button?.classList.contains("danger") ?? false;
  if (!(await askFirst(form.dataset.confirm, button?.textContent.trim() || _("Continue"), isDanger))) return;
  form.dataset.confirmed = "";
  form.requestSubmit(button);
  delete form.dataset.confirmed;
});

// A form is submitted once, however often its button is pressed: each submission would place a call, send a message, or buy a number. The
// page's own module runs first (an event reaches the window last). After a while the form may be submitted again.
addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if ("sent" in form.dataset) return event.preventDefault();
  form.dataset.sent = "";
  setTimeout(() => delete form.dataset.sent, SENT_MS);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = _("Copied");
  } catch {
    // Browsers do not allow copying on plain HTTP pages.
    getSelection().selectAllChildren(text);
    button.textContent = _("Selected. Press Ctrl+C to copy.");
  }
});

// Apply a filter when it is selected; without this module, the form has a button.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-at-once] select")) event.target.form.requestSubmit();
});

// Replace field names in the list of errors by the fields' labels. Fields in rows keep their name, which has the row's number.
for (const link of document.querySelectorAll(".faults a")) {
  const field = document.getElementById(link.hash.slice(1));
  const label = field?.labels?.[0] ?? field?.querySelector("legend");
  const words = [...(label?.childNodes ?? [])].find((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (words && !/\.\d+\./.test(link.hash)) link.textContent = words.textContent.trim();
}

document.querySelector("[data-focus]")?.focus();
labelCells(document);
document.addEventListener("live", ({ target }) => labelCells(target));
keepLive(document);
