// Talking to an agent: one button, both volume meters, and the transcript.
import { CALL_MODULES, describeFault, postForm, requireMicrophone, showDuration } from "./calling.js";
import { showLevel } from "./level.js";
import { _ } from "./messages.js";

const SPEAKERS = { user: _("You"), agent: _("Agent"), tool: _("Tool"), system: _("Note") };
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
let stopClock = () => {};

function showStatus(text) {
  find(".state").textContent = text;
}

function showCalling(on) {
  button.classList.toggle("on", on);
  find("#call-name").textContent = on ? _("Hang up") : _("Talk again");
  mute.hidden = !on;
}

/** Retry, because the call may be answered shortly before it can be monitored. */
async function transcriptOf(carrier, carrierCallId) {
  for (let attempt = 1; ; attempt++) {
    try {
      const body = await postForm(panel.dataset.csrf, panel.dataset.transcript, { carrier, carrier_call_id: carrierCallId });
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
  if (state === "ringing") showStatus(_("Ringing …"));
  if (state === "connected") stopClock = showDuration(showStatus);
  if (state === "ended") {
    stopClock();
    call = null;
    showCalling(false);
    showYou(null);
    showAgent(null);
    showStatus(message ?? _("Call ended."));
    find("[data-done]").hidden = find("[data-done] a").getAttribute("href") === "#";
  }
}

async function startTalking() {
  requireMicrophone();
  const { token, connection, carrier, to_number: toNumber } = await postForm(panel.dataset.csrf, panel.dataset.begin);
  if (carrier !== panel.dataset.carrier) throw new Error(_("The carrier has changed. Reload this page."));
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
  showStatus(_("Asking for the microphone …"));
  try {
    call = await startTalking();
    showCalling(true);
    mute.setAttribute("aria-pressed", "false");
  } catch (error) {
    showStatus(describeFault(error));
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
