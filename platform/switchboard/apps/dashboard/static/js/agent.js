// An agent's form: rows, and what the chosen providers offer.
import "./form-rows.js";

/**
 * Keep a field's choices to what its provider offers.
 * @param {{provider: string, field: string, list: string, atOnce?: boolean}} names  `atOnce`: the page came without them, because providers take their time.
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
