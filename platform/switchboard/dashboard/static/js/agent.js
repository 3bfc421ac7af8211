// An agent's form: rows, and the voices of the provider that is chosen.
import "./form-rows.js";

const voices = document.getElementById("voices");

document.getElementById("field-tts_provider").addEventListener("change", async (event) => {
  document.getElementById("field-tts_voice_id").value = "";
  const answer = await fetch(`${voices.dataset.address}?provider=${encodeURIComponent(event.target.value)}`);
  voices.innerHTML = answer.ok ? await answer.text() : "";
});
