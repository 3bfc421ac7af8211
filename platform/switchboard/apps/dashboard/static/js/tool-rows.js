// The rows of tools: arguments as fields instead of a JSON schema, and a button that tests the tool. A schema that the fields cannot show stays
// JSON.
import { _ } from "./messages.js";
const TYPES = { string: _("Text"), number: _("Number"), integer: _("Whole number"), boolean: _("Yes or no") };
const SIMPLE = ["type", "description"];

const tools = document.querySelector("[data-rows=tools]");

/** @returns {object[] | null} the arguments of a schema; null for one that is more than a list of plain values */
function readSchema(text) {
  if (!text.trim()) return [];
  let schema;
  try {
    schema = JSON.parse(text);
  } catch {
    return null;
  }
  const { type, properties = {}, required = [], ...others } = schema ?? {};
  if (type !== "object" || Object.keys(others).length) return null;
  const found = Object.entries(properties);
  if (!found.every(([, part]) => part?.type in TYPES && Object.keys(part).every((key) => SIMPLE.includes(key)))) return null;
  return found.map(([name, part]) => ({ name, type: part.type, description: part.description ?? "", required: required.includes(name) }));
}

function writeSchema(given) {
  const named = given.filter(({ name }) => name);
  if (!named.length) return "";
  const properties = Object.fromEntries(named.map(({ name, type, description }) => [name, description ? { type, description } : { type }]));
  return JSON.stringify({ type: "object", properties, required: named.filter((one) => one.required).map(({ name }) => name) }, null, 2);
}

function addField(line, element, label, value) {
  const field = line.appendChild(document.createElement(element));
  field.setAttribute("aria-label", label);
  if (value !== undefined) field.value = value;
  return field;
}

/** Show a tool's arguments as fields, each change of which is written to the JSON of the row. */
function editArguments(row) {
  const box = row.querySelector("[data-arguments]");
  const text = row.querySelector("[name$='.parameters']");
  const list = box.querySelector("ul");
  const details = row.querySelector("[data-schema]");

  function write() {
    text.value = writeSchema([...list.children].map((line) => line.readArgument()));
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function addArgument({ name = "", type = "string", description = "", required = true } = {}) {
    const line = list.appendChild(document.createElement("li"));
    const nameField = addField(line, "input", _("Name of the argument"), name);
    nameField.placeholder = "order_number";
    const typeField = addField(line, "select", _("Type"));
    for (const [kind, title] of Object.entries(TYPES)) typeField.add(new Option(title, kind, false, kind === type));
    const about = addField(line, "input", _("Description"), description);
    about.placeholder = _("What the model must give");
    const label = line.appendChild(document.createElement("label"));
    const mustGive = label.appendChild(document.createElement("input"));
    mustGive.type = "checkbox";
    mustGive.checked = required;
    label.append(_("Required"));
    const remove = line.appendChild(document.createElement("button"));
    remove.type = "button";
    remove.className = "button small danger";
    remove.textContent = _("Remove");
    remove.setAttribute("aria-label", _("Remove this argument"));
    remove.addEventListener("click", () => {
      line.remove();
      write();
    });
    line.readArgument = () => ({ name: nameField.value.trim(), type: typeField.value, description: about.value.trim(), required: mustGive.checked });
    line.addEventListener("input", write);
    return nameField;
  }

  function show() {
    const given = readSchema(text.value);
    box.hidden = given === null;
    details.open = given === null || details.querySelector(".fault") !== null;
    list.replaceChildren();
    given?.forEach(addArgument);
  }

  box.querySelector("[data-add-argument]").addEventListener("click", () => addArgument().focus());
  text.addEventListener("change", show);
  show();
}

function readTool(row) {
  const read = (name) => row.querySelector(`[name$='.${name}']`).value.trim();
  const tool = { name: read("name"), description: read("description"), url: read("url") };
  if (read("parameters")) tool.parameters = JSON.parse(read("parameters"));
  if (read("time_limit_seconds")) tool.time_limit_seconds = Number(read("time_limit_seconds"));
  return tool;
}

function addBlock(result, title, text) {
  result.appendChild(document.createElement("h3")).textContent = title;
  const block = result.appendChild(document.createElement("pre"));
  block.tabIndex = 0;
  block.textContent = text;
}

async function sendTest(row) {
  const result = row.querySelector("[data-test-result]");
  result.textContent = _("Sending …");
  try {
    const fields = { tool: JSON.stringify(readTool(row)), arguments: row.querySelector("[data-test-tool] textarea").value };
    const body = new URLSearchParams({ ...fields, agent_id: tools.dataset.agent, csrf_token: row.closest("form").elements.csrf_token.value });
    const response = await fetch(tools.dataset.testAddress, { method: "POST", body });
    const reply = await response.json().catch(() => ({ fault: _("This page is out of date. Reload it.") }));
    if (!response.ok) throw new Error(reply.fault);
    result.replaceChildren();
    addBlock(result, _("Request"), JSON.stringify(JSON.parse(reply.request), null, 2));
    addBlock(result, reply.status === null ? _("No answer") : _("Answer: status {status} after {milliseconds} ms", reply), reply.error || reply.answer || _("(empty)"));
  } catch (error) {
    result.textContent = error.message;
  }
}

function enableTool(row) {
  if ("enabled" in row.dataset) return;
  row.dataset.enabled = "";
  editArguments(row);
  const test = row.querySelector("[data-test-tool]");
  test.hidden = false;
  test.addEventListener("toggle", () => {
    const text = test.querySelector("textarea");
    const given = readSchema(row.querySelector("[name$='.parameters']").value) ?? [];
    if (!text.value) text.value = JSON.stringify(Object.fromEntries(given.map(({ name, type }) => [name, type === "boolean" ? false : type === "string" ? "" : 0])), null, 2);
  });
  test.querySelector("[data-send-test]").addEventListener("click", () => sendTest(row));
}

if (tools) {
  const enableAll = () => tools.querySelectorAll(":scope > [data-row]").forEach(enableTool);
  enableAll();
  new MutationObserver(enableAll).observe(tools, { childList: true });
}
