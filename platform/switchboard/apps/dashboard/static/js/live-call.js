// Supervision of a live call: listen, whisper to the agent, take over, hand back, and hang up.
import { askFirst } from "./confirm.js";
import { showLevel } from "./level.js";
import { followCall } from "./monitor.js";
import { _ } from "./messages.js";

const RECONNECT_MILLISECONDS = 1000;
const MAX_RECONNECTIONS = 3;

const panel = document.querySelector("[data-supervision]");
const find = (name) => panel.querySelector(`[data-${name}]`);
const levels = { caller: showLevel(find(`level="caller"`)), agent: showLevel(find(`level="agent"`)) };
const listen = find("listen");

/** @type {import("./monitor.js").Monitor | null} */
let monitor = null;
let hasCall = false;
let isClosing = false;
let isNavigating = false;
let reconnections = 0;

function showError(message) {
  find("fault").textContent = message;
  find("fault").hidden = !message;
}

/** Show the available actions. If the focused button disappears, focus its replacement. */
function showHolder(holder) {
  const isMonitoring = monitor !== null;
  const focused = panel.contains(document.activeElement) && document.activeElement;
  hasCall = holder?.you === true;
  const mayTakeOver = isMonitoring && holder === null && "control" in panel.dataset;
  find("take-over").hidden = !mayTakeOver;
  find("hand-back").hidden = !hasCall;
  find("hang-up").hidden = !hasCall;
  find("whisper").hidden = !mayTakeOver;
  listen.classList.toggle("primary", !isMonitoring);
  listen.querySelector("span").textContent = isMonitoring ? _("Stop listening") : _("Listen");
  find("hint").textContent = hasCall ? _("They hear you. The agent is waiting.") : _("You hear both sides. They do not hear you.");
  find("our-side").textContent = hasCall ? _("You") : holder?.name ?? _("Agent");
  find("dot").className = `dot ${holder ? "busy" : "good"}`;
  if (focused?.hidden) (hasCall ? find("hand-back") : find("take-over")).focus();
}

function showState({ holder, agent }) {
  reconnections = 0;
  const activities = { listening: _("The agent is listening."), thinking: _("The agent is thinking."), speaking: _("The agent is speaking."), silent: _("The agent is silent.") };
  const state = holder === null ? activities[agent] : holder.you ? _("You have the call.") : _("{name} has the call.", { name: holder.name });
  if (find("state").textContent !== state) find("state").textContent = state;
  showHolder(holder);
}

async function createTicket() {
  const response = await fetch(panel.dataset.ticket, { method: "POST", body: new URLSearchParams({ csrf_token: panel.dataset.token }) });
  const body = await response.json().catch(() => ({ fault: _("The call cannot be monitored.") }));
  if (!response.ok || body.fault) throw new Error(body.fault);
  return body.url;
}

async function startMonitoring() {
  showError("");
  listen.disabled = true;
  isClosing = false;
  try {
    const url = await createTicket();
    monitor = await followCall({ url, sound: true, onState: showState, onRefused: showError, onEnded: handleEnd, onLevel: showLevels });
  } catch (error) {
    showError(error.message);
  }
  listen.disabled = false;
  return monitor !== null;
}

function showLevels({ caller, agent }) {
  levels.caller(caller);
  levels.agent(agent);
}

/** Open the details of the ended call. Both the socket and the page's live part report the end; the second must not interrupt the navigation. */
function openDetails() {
  if (isNavigating) return;
  isNavigating = true;
  location.assign(panel.dataset.after);
}

/** Handle the end of the call or of the connection. After a lost connection, reconnect, and take the call over again before the agent does. */
async function handleEnd(reason) {
  const hadCall = hasCall;
  monitor = null;
  showLevels({ caller: null, agent: null });
  if (reason !== null) return openDetails();
  showHolder(null);
  if (isClosing) return;
  showError(_("The connection was lost."));
  if (reconnections >= MAX_RECONNECTIONS) return;
  reconnections += 1;
  await new Promise((resolve) => setTimeout(resolve, RECONNECT_MILLISECONDS));
  if (monitor === null && (await startMonitoring()) && hadCall) await monitor.takeOver();
}

listen.addEventListener("click", () => {
  if (monitor === null) return startMonitoring();
  isClosing = true;
  monitor.close();
});
find("take-over").addEventListener("click", () => {
  showError("");
  monitor?.takeOver();
});
find("hand-back").addEventListener("click", () => monitor?.handBack());
find("hang-up").addEventListener("click", async () => {
  if (await askFirst(_("End this call?"), _("Hang up"), true)) monitor?.hangUp();
});
find("whisper").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.querySelector("textarea");
  if (!field.value.trim()) return;
  monitor?.whisper(field.value.trim());
  field.value = "";
});
document.addEventListener("live", () => {
  if (monitor === null && document.querySelector("[data-over]")) openDetails();
});
listen.disabled = false;
// From the call queue: the call waits for this person, or still rings.
if ("answer" in panel.dataset && (await startMonitoring())) monitor.takeOver();
