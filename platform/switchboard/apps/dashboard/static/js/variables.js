// The placeholders of an agent's texts: which it uses, which calls give, and a value of each for the chat.
import { _ } from "./messages.js";

const PLACEHOLDER = /\{\{\s*([\w.-]+)(?:\s*:\s*\w+)?\s*\}\}/g;
const TEXTS = ["greeting_message", "system_prompt", "voicemail_policy.message"];

const box = document.querySelector("[data-variables]");
const known = JSON.parse(box.dataset.variables);
const values = new Map();

/** @returns {Record<string, string>} the values that were entered */
export function readVariables() {
  return Object.fromEntries([...values].filter(([, value]) => value));
}

function listUsed() {
  const texts = TEXTS.map((name) => document.getElementById(`field-${name}`)?.value ?? "");
  return [...new Set(texts.flatMap((text) => [...text.matchAll(PLACEHOLDER)].map((match) => match[1])))];
}

function addVariable(list, name) {
  const item = list.appendChild(document.createElement("li"));
  const label = item.appendChild(document.createElement("label"));
  label.appendChild(document.createElement("code")).textContent = `{{${name}}}`;
  const about = label.appendChild(document.createElement("small"));
  about.textContent = known[name] ?? _("unknown: no recent call of this agent has it");
  about.classList.toggle("fault", !(name in known));
  const input = label.appendChild(document.createElement("input"));
  input.placeholder = _("Value in the chat");
  input.setAttribute("aria-label", _("Value of {name} in the chat", { name }));
  input.value = values.get(name) ?? "";
  input.addEventListener("input", () => values.set(name, input.value));
}

function showVariables() {
  const used = listUsed();
  if (box.dataset.used === used.join()) return;
  box.dataset.used = used.join();
  const others = Object.keys(known).filter((name) => !used.includes(name));
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = others.length ? _("Also available: {names}.", { names: others.map((name) => `{{${name}}}`).join(", ") }) : "";
  const list = document.createElement("ul");
  for (const name of used) addVariable(list, name);
  box.replaceChildren(...(used.length ? [list] : []), hint);
}

showVariables();
document.addEventListener("input", ({ target }) => {
  if (TEXTS.includes(target.name)) showVariables();
});
