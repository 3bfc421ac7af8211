// Talking to an agent: one button, both volume meters, and the transcript.
import { showLevel } from "./level.js";

const SPEAKERS = { user: "You", agent: "Agent", tool: "Tool", system: "Note" };
const FAULTS = {
  NotAllowedError: "Access to the microphone was denied. Allow it for this page in your browser, then try again.",
  NotFoundError: "No microphone was found.",
  NotReadableError: "The microphone is in use by another program.",
};
const CALL_MODULES = { "switchboard-loopback": "./browser-call.js", "twilio-voice": "./twilio-call.js", "telnyx-webrtc": "./telnyx-call.js" };
const MAX_ATTEMPTS = 20;
const RETRY_MILLISECONDS = 250;

const panel = document.getElementById("talk");
const find = (selector) => panel.querySelector(selector);
const button = find("[data-call]");
const mute = find("[data-mute]");
const list = find(".talk");
const showYou = showLevel(find("[data-you]"));
const showAgent = showLevel(find("[data-agent]"));
let call = null;
let clockTimer = 0;

function showStatus(text) {
  find(".state").textContent = text;
}

function showCalling(on) {
  button.classList.toggle("on", on);
  find("#call-name").textContent = on ? "Hang up" : "Talk again";
  mute.hidden = !on;
}

/** @returns {Promise<object>} the server's response; rejects with its error message */
async function post(address, fields = {}) {
  const response = await fetch(address, { method: "POST", body: new URLSearchParams({ csrf_token: panel.dataset.csrf, ...fields }) });
  const body = await response.json().catch(() => ({ fault: "This page is out of date. Reload it." }));
  if (!response.ok || body.fault) throw new Error(body.fault);
  return body;
}

/** Retry, because the call may be answered shortly before it can be monitored. */
async function transcriptOf(carrier, carrierCallId) {
  for (let attempt = 1; ; attempt++) {
    try {
      const body = await post(panel.dataset.transcript, { carrier, carrier_call_id: carrierCallId });
      find("[data-done] a").href = body.call;
      return body.url;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS));
    }
  }
}

/** @param {import("./monitor.js").Entry} entry */
function showEntry(entry) {
  find("[data-nothing]").hidden = true;
  const line = list.appendChild(document.createElement("li"));
  line.className = `said ${entry.role}`;
  const speaker = line.appendChild(document.createElement("span"));
  speaker.className = "speaker";
  speaker.textContent = SPEAKERS[entry.role] ?? entry.role;
  line.appendChild(document.createElement(entry.role === "tool" ? "code" : "p")).textContent = entry.content;
  list.parentElement.scrollTop = list.scrollHeight;
}

function handleState(state, message) {
  if (state === "ringing") showStatus("Ringing …");
  if (state === "connected") {
    const connectedAt = Date.now();
    const showDuration = () => showStatus(`Connected, ${formatTime(Math.floor((Date.now() - connectedAt) / 1000))}`);
    showDuration();
    clockTimer = setInterval(showDuration, 1000);
  }
  if (state === "ended") {
    clearInterval(clockTimer);
    call = null;
    showCalling(false);
    showYou(0);
    showAgent(0);
    showStatus(message ?? "Call ended.");
    find("[data-done]").hidden = find("[data-done] a").getAttribute("href") === "#";
  }
}

function formatTime(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

async function startTalking() {
  if (!navigator.mediaDevices) throw new Error("Browsers allow the microphone only on HTTPS pages.");
  const { token, connection, carrier, to_number: toNumber } = await post(panel.dataset.begin);
  if (carrier !== panel.dataset.carrier) throw new Error("The carrier has changed. Reload this page.");
  const { startCall } = await import(CALL_MODULES[connection.sdk]);
  list.replaceChildren();
  find("[data-done]").hidden = true;
  find("[data-done] a").href = "#";
  const onLevel = ({ you, agent }) => {
    if (you !== undefined) showYou(you);
    if (agent !== undefined) showAgent(agent);
  };
  const requestTranscript = (id) => transcriptOf(carrier, id);
  const sdk = panel.dataset.sdk;
  return startCall({ token, connection, sdk, toNumber, transcriptOf: requestTranscript, onTranscript: showEntry, onLevel, onState: handleState });
}

button.addEventListener("click", async () => {
  if (call) return call.hangUp();
  button.disabled = true;
  showStatus("Asking for the microphone …");
  try {
    call = await startTalking();
    showCalling(true);
    mute.setAttribute("aria-pressed", "false");
  } catch (error) {
    showStatus(FAULTS[error.name] ?? error.message);
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
