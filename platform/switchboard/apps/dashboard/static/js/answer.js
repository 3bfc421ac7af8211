// Answering calls: one button to wait for them, a panel for the call that rings, and the controls of a call.
import { CALL_MODULES, describeFault, postForm, requireMicrophone, showDuration } from "./calling.js";
import { showLevel } from "./level.js";
import { startRinging } from "./ringtone.js";
import { _ } from "./messages.js";

const NAME = "client-name";
const RENEW_MILLISECONDS = 45 * 60_000;
const RETRY_MILLISECONDS = 1000;
const MAX_RETRY_MILLISECONDS = 30_000;

const panel = document.getElementById("answering");
const find = (selector) => panel.querySelector(selector);
const button = find("[data-wait]");
const name = find("[name=name]");
const mute = find("[data-mute]");
const showYou = showLevel(find("[data-you]"));
const showCaller = showLevel(find("[data-caller-level]"));
let line = null;
let state = "off";
let stopState = () => {};
let hasWaited = false;
let retryAfter = RETRY_MILLISECONDS;

function showStatus(text) {
  find(".state").textContent = text;
}

/** Show a state: `off`, `waiting`, `ringing`, or `connected`. */
function show(next) {
  stopState();
  stopState = () => {};
  state = next;
  const isOn = next !== "off";
  button.classList.toggle("on", isOn);
  find("#wait-name").textContent = isOn ? _("Stop answering calls") : _("Answer calls here");
  name.readOnly = isOn;
  find("[data-ringing]").hidden = next !== "ringing";
  find("[data-talking]").hidden = next !== "connected";
}

function handleState(next, detail) {
  if (state === "off") return;
  if (next === "ended") return handleEnd(detail);
  show(next);
  if (next === "waiting") {
    hasWaited = true;
    retryAfter = RETRY_MILLISECONDS;
    showStatus(_("Waiting for calls to client:{name}.", { name: name.value }));
    const renewal = setTimeout(() => line?.close(), RENEW_MILLISECONDS);
    stopState = () => clearTimeout(renewal);
  }
  if (next === "ringing") {
    find("[data-caller]").textContent = detail || _("Unknown number");
    showStatus(_("A call is ringing."));
    stopState = startRinging();
    find("[data-answer]").focus();
  }
  if (next === "connected") {
    mute.setAttribute("aria-pressed", "false");
    stopState = showDuration(showStatus);
  }
}

/** A registration has ended, by its call or by a fault: register again. */
function handleEnd(message) {
  line = null;
  showYou(null);
  showCaller(null);
  show("waiting");
  showStatus(message ?? _("Registering …"));
  const retry = setTimeout(register, retryAfter);
  retryAfter = Math.min(2 * retryAfter, MAX_RETRY_MILLISECONDS);
  stopState = () => clearTimeout(retry);
}

async function register() {
  try {
    const { token, connection, carrier } = await postForm(panel.dataset.csrf, panel.dataset.begin, { name: name.value });
    if (carrier !== panel.dataset.carrier) throw new Error(_("The carrier has changed. Reload this page."));
    const { waitForCall } = await import(CALL_MODULES[connection.sdk]);
    const onLevel = ({ you, agent }) => {
      if (you !== undefined) showYou(you);
      if (agent !== undefined) showCaller(agent);
    };
    line = await waitForCall({ token, connection, sdk: panel.dataset.sdk, onLevel, onState: handleState });
    if (state === "off") line.close();
  } catch (error) {
    // Whoever has waited before waits through a restart of the server.
    if (hasWaited) return handleState("ended", describeFault(error));
    show("off");
    showStatus(describeFault(error));
  }
}

function stop() {
  show("off");
  hasWaited = false;
  line?.close();
  line = null;
  showStatus(_("Calls do not ring here."));
}

button.addEventListener("click", async () => {
  if (state !== "off") return stop();
  if (!name.reportValidity()) return;
  button.disabled = true;
  showStatus(_("Asking for the microphone …"));
  try {
    requireMicrophone();
    localStorage.setItem(NAME, name.value);
    show("waiting");
    await register();
  } catch (error) {
    show("off");
    showStatus(describeFault(error));
  } finally {
    button.disabled = false;
  }
});

find("[data-answer]").addEventListener("click", () => line?.answer().catch((error) => (line?.close(), showStatus(describeFault(error)))));
find("[data-decline]").addEventListener("click", () => line?.decline());
find("[data-hang-up]").addEventListener("click", () => line?.hangUp());
for (const key of panel.querySelectorAll("[data-key]")) key.addEventListener("click", () => line?.press(key.dataset.key));
mute.addEventListener("click", () => {
  const muted = mute.getAttribute("aria-pressed") !== "true";
  mute.setAttribute("aria-pressed", String(muted));
  line?.mute(muted);
});

name.value = localStorage.getItem(NAME) ?? name.value;
addEventListener("pagehide", () => line?.close());
