// The widget: a button that opens a panel with a chat, and with a call.
import { createChat } from "./chat.js";
import { createCall } from "./call.js";
import { applyTheme } from "./theme.js";

const { dataset } = document.body;
const labels = JSON.parse(dataset.labels);
const find = (id) => document.getElementById(id);
const panel = find("panel");
const launcher = find("launcher");
const messages = find("messages");

/** The host page is the parent; it learns only whether the panel is open. */
function tellPage(message) {
  if (parent !== window) parent.postMessage(message, "*");
}

function showPanel(open, { focus = true } = {}) {
  panel.hidden = !open;
  document.querySelector("main").inert = open;
  launcher.hidden = open;
  launcher.setAttribute("aria-expanded", String(open));
  tellPage({ switchboard: "resize", open });
  if (open) {
    chat.resume();
    if (focus) (find("text") ?? find("call") ?? find("close")).focus();
  } else if (focus) launcher.focus();
}

/** @param {"user" | "agent"} role */
function showMessage(role, content) {
  const bubble = messages.appendChild(document.createElement("p"));
  bubble.className = `message ${role}`;
  if (role === "user") {
    const who = bubble.appendChild(document.createElement("span"));
    who.className = "hidden-text";
    who.textContent = `${labels.you}: `;
  }
  bubble.append(content);
  messages.scrollTop = messages.scrollHeight;
  return bubble;
}

function showState(text) {
  find("state").textContent = text;
}

/** Keep the focus in the panel, and close it by Escape. */
function handleKey(event) {
  if (event.key === "Escape") return showPanel(false);
  if (event.key !== "Tab") return undefined;
  const stops = [...panel.querySelectorAll("button, textarea, [tabindex='0']")].filter((stop) => !stop.disabled && stop.offsetParent);
  const [first, last] = [stops[0], stops.at(-1)];
  if (event.shiftKey ? document.activeElement === first : document.activeElement === last) {
    event.preventDefault();
    (event.shiftKey ? last : first).focus();
  }
  return undefined;
}

const page = { key: dataset.key, labels, find, showMessage, showState };
applyTheme(dataset);
const greeting = dataset.greeting ? showMessage("agent", dataset.greeting) : null;
const chat = createChat({ ...page, greeting });
if (find("call")) createCall({ ...page, readChat: chat.readSession, onActive: chat.disable });

const ready = { switchboard: "ready", position: dataset.position, title: find("title").textContent };

launcher.addEventListener("click", () => showPanel(true));
find("close").addEventListener("click", () => showPanel(false));
panel.addEventListener("keydown", handleKey);
addEventListener("message", ({ source, origin, data }) => {
  if (source !== parent) return;
  if (data?.switchboard === "hello") tellPage(ready);
  if (data?.switchboard === "open") showPanel(true, { focus: false });
  if (data?.switchboard === "placed") document.body.classList.toggle("whole", data.whole);
  if (data?.switchboard === "preview" && origin === location.origin) {
    applyTheme(data);
    for (const title of document.querySelectorAll("[data-title]")) title.textContent = data.title;
    if (greeting) greeting.textContent = data.greeting;
  }
});
tellPage(ready);
