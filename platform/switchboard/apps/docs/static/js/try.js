// Requests from the reference, with a key that only this page's memory has. A request that changes something asks first.
import { askFirst } from "/dashboard/static/js/confirm.js";

const MOST_CHARACTERS = 50_000;

function buildRequest(form, key) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = { Authorization: `Bearer ${key}` };
  let body;
  for (const input of form.querySelectorAll("[data-in]")) {
    const value = input.value.trim();
    if (!value) continue;
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    else if (input.dataset.in === "query") query.append(input.name, value);
    else if (input.dataset.in === "header") headers[input.name] = value;
    else body = value;
  }
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const address = query.size ? `${path}?${query}` : path;
  return [address, { method: form.dataset.method, headers, body, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" }];
}

async function readBody(response) {
  const kind = response.headers.get("Content-Type") ?? "";
  if (!/json|text/.test(kind)) return { file: await response.blob(), kind };
  const text = await response.text();
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2) };
  } catch {
    return { text };
  }
}

function show(answer, line, { text = "", file, kind } = {}) {
  answer.replaceChildren();
  answer.appendChild(document.createElement("p")).textContent = line;
  if (file?.size) {
    const link = answer.appendChild(document.createElement("a"));
    link.href = URL.createObjectURL(file);
    link.download = "";
    link.textContent = `Save the file (${kind}, ${file.size} bytes)`;
  }
  if (!text) return;
  const shown = answer.appendChild(document.createElement("pre"));
  shown.tabIndex = 0;
  shown.textContent = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}\n… ${text.length} characters` : text;
}

async function send(form, keyField) {
  const answer = form.querySelector(".answer");
  const key = keyField.value.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) {
    show(answer, "Enter an API key above first.");
    keyField.focus();
    return;
  }
  if (form.dataset.question && !(await askFirst(form.dataset.question, "Send"))) return;
  const button = form.querySelector(".form-end button");
  button.disabled = true;
  const began = performance.now();
  try {
    const response = await fetch(...buildRequest(form, key));
    const body = await readBody(response);
    const words = [`${response.status} ${response.statusText}`, `${Math.round(performance.now() - began)} ms`];
    const id = response.headers.get("X-Request-Id");
    show(answer, [...words, ...(id ? [`request ${id}`] : [])].join(" · "), body);
  } catch (error) {
    show(answer, `No response: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

export function prepareTrials() {
  const box = document.querySelector("[data-try-key]");
  if (!box) return;
  const keyField = box.querySelector("input");
  box.hidden = false;
  // A page that the browser keeps for its back button has no key either.
  addEventListener("pagehide", () => (keyField.value = ""));
  for (const part of document.querySelectorAll("[data-try]")) {
    part.hidden = false;
    part.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      send(event.target, keyField);
    });
  }
}
