// A new simulation's form: rows, and the value field of each assertion type.
import "./form-rows.js";
import { _ } from "./messages.js";

const VALUE_FIELDS = {
  said: [_("Words"), _("In this order, in upper or lower case. * stands for anything."), "open from * to six"],
  never_said: [_("Words"), _("In this order, in upper or lower case. * stands for anything."), "I do not know"],
  tool_called: [_("Tool"), _("The name of the tool."), "transfer_call"],
  ended_by: [_("Ended by"), _("agent, caller, transfer, or limit."), "agent"],
  latency_under_ms: [_("Milliseconds"), _("From the caller's last sound to the agent's first. Audio simulations only."), "2000"],
  judge: [_("Question"), _("The agent's model reads the conversation and answers yes or no."), "Was the agent friendly throughout?"],
};

/** @param {HTMLElement} row */
function showValueField(row) {
  const kind = row.querySelector("select[name$='.type']").value;
  const value = row.querySelector("input[name$='.value']");
  const [label, hint, example] = VALUE_FIELDS[kind];
  value.labels[0].textContent = label;
  value.closest(".field").querySelector(".hint").textContent = hint;
  value.placeholder = example;
  value.setAttribute("list", `values-${kind}`);
  for (const element of row.querySelectorAll("[data-only]")) element.hidden = element.dataset.only !== kind;
}

function showAllValueFields() {
  document.querySelectorAll("[data-row]").forEach(showValueField);
}

showAllValueFields();
document.addEventListener("change", showAllValueFields);
document.querySelector("[data-add]").addEventListener("click", showAllValueFields);
