// An agent's form: rows, what was not saved, placeholders, the chat, and the voices and models of the chosen providers.
import "./form-rows.js";
import "./keep-form.js";
import "./chat.js";
import "./tool-rows.js";
import "./voices.js";

/**
 * Offer the choices of the selected provider in a field.
 * @param {{provider: string, field: string, list: string, atOnce?: boolean}} names  `atOnce`: load them now, because the page is rendered without them (providers can be slow).
 */
function offerChoices({ provider, field, list, atOnce = false }) {
  const providerField = document.getElementById(`field-${provider}`);
  const choiceList = document.getElementById(list);

  async function loadChoices() {
    const response = await fetch(`${choiceList.dataset.address}?provider=${encodeURIComponent(providerField.value)}`);
    const html = response.ok ? await response.text() : "";
    if (html) choiceList.innerHTML = html;
  }

  providerField.addEventListener("change", () => {
    document.getElementById(`field-${field}`).value = "";
    choiceList.replaceChildren();
    loadChoices();
  });
  if (atOnce && providerField.value) loadChoices();
}

/** Add a tool that the template suggests, whose address is still to be filled in. */
function addSuggestedTool(button) {
  const list = document.querySelector("[data-rows=tools]");
  list.querySelector(":scope > [data-add]").click();
  const row = [...list.querySelectorAll(":scope > [data-row]")].at(-1);
  const { name, description, parameters } = JSON.parse(button.dataset.suggested);
  row.querySelector("[name$='.name']").value = name;
  row.querySelector("[name$='.description']").value = description;
  const schema = row.querySelector("[name$='.parameters']");
  schema.value = JSON.stringify(parameters, null, 2);
  requestAnimationFrame(() => schema.dispatchEvent(new Event("change")));
  row.querySelector("[name$='.url']").focus();
  button.disabled = true;
}

for (const button of document.querySelectorAll("[data-suggested]")) {
  button.hidden = false;
  button.addEventListener("click", () => addSuggestedTool(button));
}

offerChoices({ provider: "tts_provider", field: "tts_voice_id", list: "voices" });
offerChoices({ provider: "llm_provider", field: "llm_model", list: "models-llm", atOnce: true });
