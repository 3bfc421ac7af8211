// Lists the chosen provider's voices with a button that plays each.
import { _ } from "./messages.js";
const box = document.querySelector("[data-voices]");
const offered = document.getElementById("voices");
const list = box.querySelector("ul");
const player = new Audio();
const samples = new Map();

const getValue = (name) => document.getElementById(`field-${name}`).value;

/** @returns {Promise<string>} the address of the sample, which is loaded once */
async function loadSample(voice) {
  const fields = {
    csrf_token: box.closest("form").elements.csrf_token.value,
    provider: getValue("tts_provider"),
    model: getValue("tts_model"),
    language: getValue("stt_language") || "en-US",
    speed: getValue("voice_speed") || "1",
    text: getValue("greeting_message"),
    voice,
  };
  const key = JSON.stringify(fields);
  if (samples.has(key)) return samples.get(key);
  const response = await fetch(box.dataset.voices, { method: "POST", body: new URLSearchParams(fields) });
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).fault ?? _("This page is out of date. Reload it."));
  samples.set(key, URL.createObjectURL(await response.blob()));
  return samples.get(key);
}

async function play(voice, name) {
  const status = box.querySelector(".state");
  status.textContent = _("Loading {name} …", { name });
  try {
    player.src = await loadSample(voice);
    await player.play();
    status.textContent = _("Playing {name}.", { name });
  } catch (error) {
    status.textContent = error.message;
  }
}

function addButton(line, text, name, act) {
  const button = line.appendChild(document.createElement("button"));
  button.type = "button";
  button.className = "button small";
  button.textContent = text;
  button.setAttribute("aria-label", `${text} ${name}`);
  button.addEventListener("click", act);
}

function addVoice(voice, name) {
  const line = list.appendChild(document.createElement("li"));
  line.appendChild(document.createElement("span")).textContent = name;
  addButton(line, _("Play"), name, () => play(voice, name));
  addButton(line, _("Use"), name, () => {
    const field = document.getElementById("field-tts_voice_id");
    field.value = voice;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    box.querySelector(".state").textContent = _("{name} is chosen.", { name });
  });
}

function showVoices() {
  list.replaceChildren();
  addVoice("", _("The provider's default"));
  for (const option of offered.options) addVoice(option.value, option.textContent);
}

player.addEventListener("ended", () => (box.querySelector(".state").textContent = ""));
box.addEventListener("toggle", () => box.open && showVoices());
new MutationObserver(() => box.open && showVoices()).observe(offered, { childList: true });
box.hidden = false;
