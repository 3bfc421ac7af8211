// A chat with the agent of the form. The browser keeps the conversation; each message carries it and the form's fields.
import { readVariables } from "./variables.js";
import { _ } from "./messages.js";

const SPEAKERS = { user: _("You"), agent: _("Agent") };
const ENDINGS = { agent: _("The agent ended the call."), transfer: _("The agent transferred the call.") };

const panel = document.querySelector("[data-chat]");
const settings = document.querySelector(".studio > form");
const form = panel?.querySelector("form");
const text = panel?.querySelector("textarea");
const list = panel?.querySelector(".talk");
let entries = [];
let parts = [];
let learned = {};

function forget() {
  entries = [];
  parts = [];
  learned = {};
}

function showStatus(words) {
  panel.querySelector(".state").textContent = words;
}

function addLine(role, speaker) {
  const line = list.appendChild(document.createElement("li"));
  line.className = `said ${role}`;
  const name = line.appendChild(document.createElement("span"));
  name.className = "speaker";
  name.textContent = speaker;
  return line;
}

/** @param {{role: string, content: string}} entry */
function showEntry({ role, content }) {
  if (role !== "tool") {
    addLine(role, SPEAKERS[role] ?? "").appendChild(document.createElement("p")).textContent = content;
    return;
  }
  const { tool, ...parts } = JSON.parse(content);
  const code = addLine(role, _("Tool {tool}", { tool })).appendChild(document.createElement("code"));
  code.textContent = Object.entries(parts).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join("\n");
}

/** @param {string[]} passages */
function showPassages(passages) {
  if (!passages.length) return;
  const details = addLine("system", "Knowledge").appendChild(document.createElement("details"));
  details.appendChild(document.createElement("summary")).textContent = passages.length === 1 ? _("1 passage") : _("{count} passages", { count: passages.length });
  for (const passage of passages) details.appendChild(document.createElement("blockquote")).textContent = passage;
}

async function askAgent(message) {
  const body = new URLSearchParams(new FormData(settings));
  const runsTools = panel.querySelector("[data-runs-tools]").checked;
  body.set("chat", JSON.stringify({ entries, parts, learned, text: message, variables: readVariables(), runs_tools: runsTools }));
  const response = await fetch(panel.dataset.chat, { method: "POST", body });
  const reply = await response.json().catch(() => ({ fault: _("This page is out of date. Reload it.") }));
  if (!response.ok) throw new Error(reply.fault);
  return reply;
}

async function send() {
  const message = text.value.trim();
  if (!message) return;
  const button = form.querySelector("button");
  button.disabled = true;
  showStatus(_("The agent is thinking …"));
  try {
    const reply = await askAgent(message);
    entries.push(...reply.entries);
    parts = reply.parts;
    learned = reply.learned;
    for (const entry of reply.entries) {
      showEntry(entry);
      if (entry.role === "user") showPassages(reply.passages);
    }
    text.value = "";
    showStatus(ENDINGS[reply.ended_by] ?? "");
    if (reply.ended_by) forget();
  } catch (error) {
    showStatus(error.message);
  } finally {
    button.disabled = false;
    list.parentElement.scrollTop = list.scrollHeight;
    text.focus();
  }
}

if (panel) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  panel.querySelector("[data-restart]").addEventListener("click", () => {
    forget();
    list.replaceChildren();
    showStatus("");
    text.focus();
  });
}
