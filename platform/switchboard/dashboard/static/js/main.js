// What every page uses: the menu on small screens, the theme, questions before buttons that cannot be undone, copying, live parts.
import { keepLive } from "./live.js";

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

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});

// A filter that is chosen applies at once; without this module its form has a button.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-at-once] select")) event.target.form.requestSubmit();
});

document.querySelector("[data-focus]")?.focus();
keepLive(document);
