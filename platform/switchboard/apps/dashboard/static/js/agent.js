// An agent's form: rows, what was not saved, placeholders, the chat, and the voices and models of the chosen providers.
import "./form-rows.js";
import "./keep-form.js";
import "./chat.js";

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

offerChoices({ provider: "tts_provider", field: "tts_voice_id", list: "voices" });
offerChoices({ provider: "llm_provider", field: "llm_model", list: "models-llm", atOnce: true });
