// An agent's form: rows, and the voices and models of the chosen providers.
import "./form-rows.js";

/**
 * Offer the choices of the selected provider in a field.
 * @param {{provider: string, field: string, list: string, atOnce?: boolean}} names  `atOnce`: load them now, because the page is rendered without them (providers can be slow).
 */
function offer({ provider, field, list, atOnce = false }) {
  const chosen = document.getElementById(`field-${provider}`);
  const choices = document.getElementById(list);

  async function fill() {
    const answer = await fetch(`${choices.dataset.address}?provider=${encodeURIComponent(chosen.value)}`);
    const offered = answer.ok ? await answer.text() : "";
    if (offered) choices.innerHTML = offered;
  }

  chosen.addEventListener("change", () => {
    document.getElementById(`field-${field}`).value = "";
    choices.replaceChildren();
    fill();
  });
  if (atOnce && chosen.value) fill();
}

offer({ provider: "tts_provider", field: "tts_voice_id", list: "voices" });
offer({ provider: "llm_provider", field: "llm_model", list: "models-llm", atOnce: true });
