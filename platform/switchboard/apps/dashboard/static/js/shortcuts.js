// Keyboard shortcuts. Those of a single key can be switched off, for people who speak to their computer (WCAG 2.1.4).
import { openFinder } from "./search.js";

const SECOND_KEY_MS = 1500;
const SWITCHED_OFF = "single-keys-off";
const list = document.getElementById("shortcuts");
const singleKeys = list.querySelector("[data-single-keys]");
let goingUntil = 0;

singleKeys.checked = localStorage.getItem(SWITCHED_OFF) === null;
singleKeys.addEventListener("change", () => {
  if (singleKeys.checked) localStorage.removeItem(SWITCHED_OFF);
  else localStorage.setItem(SWITCHED_OFF, "1");
});

function isTyping(element) {
  return element.isContentEditable || element.matches("input:not([type=checkbox], [type=radio], [type=range]), select, textarea");
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openFinder();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys.checked) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const page = performance.now() < goingUntil && document.querySelector(`[data-go="${CSS.escape(key)}"]`);
  goingUntil = key === "g" ? performance.now() + SECOND_KEY_MS : 0;
  if (page) page.click();
  else if (key === "/") openFinder();
  else if (key === "?") list.showModal();
  else return;
  event.preventDefault();
});
