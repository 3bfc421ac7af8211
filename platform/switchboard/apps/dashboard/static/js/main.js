// What every page uses: the menu on small screens, the theme, questions before buttons that cannot be undone, copying, live parts.
import { keepLive } from "./live.js";

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

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

// A form is sent once, however often its button is pressed: a call is placed, a text sent, a number bought for each time that it comes. Its own
// page's module has had its say before (an event reaches the window last); whoever stopped the page meanwhile may send it again.
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
    button.textContent = "Copied";
  } catch {
    // Browsers let pages that came over plain http copy nothing.
    getSelection().selectAllChildren(text);
    button.textContent = "Selected. Press Ctrl+C to copy.";
  }
});

// A filter that is chosen applies at once; without this module its form has a button.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-at-once] select")) event.target.form.requestSubmit();
});

// What is wrong is listed by the names that fields have for programs; here by what stands above each field. Rows keep their place in the name.
for (const link of document.querySelectorAll(".faults a")) {
  const field = document.getElementById(link.hash.slice(1));
  const label = field?.labels?.[0] ?? field?.querySelector("legend");
  const words = [...(label?.childNodes ?? [])].find((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (words && !/\.\d+\./.test(link.hash)) link.textContent = words.textContent.trim();
}

document.querySelector("[data-focus]")?.focus();
keepLive(document);
