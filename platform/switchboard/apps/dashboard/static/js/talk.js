// Talking to an agent: one button, both volume meters, and the transcript.
import { showLevel } from "./level.js";

const WORDS = { user: "You", agent: "Agent", tool: "Tool", system: "Note" };
const FAULTS = {
  NotAllowedError: "Access to the microphone was denied. Allow it for this page in your browser, then try again.",
  NotFoundError: "No microphone was found.",
  NotReadableError: "The microphone is in use by another program.",
};
const WAYS = { "switchboard-loopback": "./browser-call.js", "twilio-voice": "./twilio-call.js", "telnyx-webrtc": "./telnyx-call.js" };
const TRIES = 20;
const BETWEEN_TRIES = 250;

const desk = document.getElementById("talk");
const find = (selector) => desk.querySelector(selector);
const button = find("[data-call]");
const mute = find("[data-mute]");
const list = find(".talk");
const showYou = showLevel(find("[data-you]"));
const showAgent = showLevel(find("[data-agent]"));
let call = null;
let ticking = 0;

function say(text) {
  find(".state").textContent = text;
}

function showCalling(on) {
  button.classList.toggle("on", on);
  find("#call-name").textContent = on ? "Hang up" : "Talk again";
  mute.hidden = !on;
}

/** @returns {Promise<object>} the server's response; rejects with its error message */
async function ask(address, fields = {}) {
  const answer = await fetch(address, { method: "POST", body: new URLSearchParams({ csrf_token: desk.dataset.csrf, ...fields }) });
  const told = await answer.json().catch(() => ({ fault: "This page is out of date. Reload it." }));
  if (!answer.ok || told.fault) throw new Error(told.fault);
  return told;
}

/** Retry, because the call may be answered shortly before it can be monitored. */
async function transcriptOf(carrier, carrierCallId) {
  for (let tried = 1; ; tried++) {
    try {
      const told = await ask(desk.dataset.transcript, { carrier, carrier_call_id: carrierCallId });
      find("[data-done] a").href = told.call;
      return told.url;
    } catch (error) {
      if (tried === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_TRIES));
    }
  }
}

/** @param {import("./monitor.js").Entry} entry */
function show(entry) {
  find("[data-nothing]").hidden = true;
  const line = list.appendChild(document.createElement("li"));
  line.className = `said ${entry.role}`;
  const who = line.appendChild(document.createElement("span"));
  who.className = "speaker";
  who.textContent = WORDS[entry.role] ?? entry.role;
  line.appendChild(document.createElement(entry.role === "tool" ? "code" : "p")).textContent = entry.content;
  list.parentElement.scrollTop = list.scrollHeight;
}

function changed(state, message) {
  if (state === "ringing") say("Ringing …");
  if (state === "connected") {
    const began = Date.now();
    const tick = () => say(`Connected, ${time(Math.floor((Date.now() - began) / 1000))}`);
    tick();
    ticking = setInterval(tick, 1000);
  }
  if (state === "ended") {
    clearInterval(ticking);
    call = null;
    showCalling(false);
    showYou(0);
    showAgent(0);
    say(message ?? "Call ended.");
    find("[data-done]").hidden = find("[data-done] a").getAttribute("href") === "#";
  }
}

function time(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

async function begin() {
  if (!navigator.mediaDevices) throw new Error("Browsers allow the microphone only on HTTPS pages.");
  const { token, connection, carrier, to_number: toNumber } = await ask(desk.dataset.begin);
  if (carrier !== desk.dataset.carrier) throw new Error("The carrier has changed. Reload this page.");
  const { startCall } = await import(WAYS[connection.sdk]);
  list.replaceChildren();
  find("[data-done]").hidden = true;
  find("[data-done] a").href = "#";
  const onLevel = ({ you, agent }) => {
    if (you !== undefined) showYou(you);
    if (agent !== undefined) showAgent(agent);
  };
  const follow = (id) => transcriptOf(carrier, id);
  const sdk = desk.dataset.sdk;
  return startCall({ token, connection, sdk, toNumber, transcriptOf: follow, onTranscript: show, onLevel, onState: changed });
}

button.addEventListener("click", async () => {
  if (call) return call.hangUp();
  button.disabled = true;
  say("Asking for the microphone …");
  try {
    call = await begin();
    showCalling(true);
    mute.setAttribute("aria-pressed", "false");
  } catch (error) {
    say(FAULTS[error.name] ?? error.message);
  } finally {
    button.disabled = false;
  }
});

mute.addEventListener("click", () => {
  const muted = mute.getAttribute("aria-pressed") !== "true";
  mute.setAttribute("aria-pressed", String(muted));
  call?.mute(muted);
});

addEventListener("pagehide", () => call?.hangUp());
