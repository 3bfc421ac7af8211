// Supervision of a live call: listen, whisper to the agent, take over, hand back, and hang up.
import { showLevel } from "./level.js";
import { followCall } from "./monitor.js";

const COME_BACK_MILLISECONDS = 1000;
const COME_BACKS = 3;

const desk = document.querySelector("[data-desk]");
const part = (name) => desk.querySelector(`[data-${name}]`);
const levels = { caller: showLevel(part(`level="caller"`)), agent: showLevel(part(`level="agent"`)) };
const listen = part("listen");

/** @type {import("./monitor.js").Monitor | null} */
let monitor = null;
let mine = false;
let leaving = false;
let gone = false;
let lost = 0;

function complain(message) {
  part("fault").textContent = message;
  part("fault").hidden = !message;
}

/** Show the available actions. If the focused button disappears, focus its replacement. */
function show(holder) {
  const following = monitor !== null;
  const had = desk.contains(document.activeElement) && document.activeElement;
  mine = holder?.you === true;
  part("take-over").hidden = !following || holder !== null;
  part("hand-back").hidden = !mine;
  part("hang-up").hidden = !mine;
  part("whisper").hidden = !following || holder !== null;
  listen.classList.toggle("primary", !following);
  listen.querySelector("span").textContent = following ? "Stop listening" : "Listen";
  part("hint").textContent = mine ? "They hear you. The agent is waiting." : "You hear both sides. They do not hear you.";
  part("our-side").textContent = mine ? "You" : holder?.name ?? "Agent";
  part("dot").className = `dot ${holder ? "busy" : "good"}`;
  if (had?.hidden) (mine ? part("hand-back") : part("take-over")).focus();
}

function told({ holder, agent }) {
  lost = 0;
  const doing = { listening: "is listening", thinking: "is thinking", speaking: "is speaking", silent: "is silent" };
  const state = holder === null ? `The agent ${doing[agent]}.` : holder.you ? "You have the call." : `${holder.name} has the call.`;
  if (part("state").textContent !== state) part("state").textContent = state;
  show(holder);
}

async function ticket() {
  const answer = await fetch(desk.dataset.ticket, { method: "POST", body: new URLSearchParams({ csrf_token: desk.dataset.token }) });
  if (!answer.ok) throw new Error(answer.headers.get("Content-Type").startsWith("text/plain") ? await answer.text() : "The call cannot be monitored.");
  return (await answer.json()).url;
}

async function follow() {
  complain("");
  listen.disabled = true;
  leaving = false;
  try {
    const url = await ticket();
    monitor = await followCall({ url, sound: true, onState: told, onRefused: complain, onEnded: over, onLevel: loud });
  } catch (error) {
    complain(error.message);
  }
  listen.disabled = false;
  return monitor !== null;
}

function loud({ caller, agent }) {
  levels.caller(caller);
  levels.agent(agent);
}

/** Open the details of the ended call. Both the socket and the page's live part report the end; the second must not interrupt the navigation. */
function leave() {
  if (gone) return;
  gone = true;
  location.assign(desk.dataset.after);
}

/** Handle the end of the call or of the connection. After a lost connection, reconnect, and take the call over again before the agent does. */
async function over(reason) {
  const had = mine;
  monitor = null;
  loud({ caller: 0, agent: 0 });
  if (reason !== null) return leave();
  show(null);
  if (leaving) return;
  complain("The connection was lost.");
  if (lost >= COME_BACKS) return;
  lost += 1;
  await new Promise((resolve) => setTimeout(resolve, COME_BACK_MILLISECONDS));
  if (monitor === null && (await follow()) && had) await monitor.takeOver();
}

listen.addEventListener("click", () => {
  if (monitor === null) return follow();
  leaving = true;
  monitor.close();
});
part("take-over").addEventListener("click", () => {
  complain("");
  monitor?.takeOver();
});
part("hand-back").addEventListener("click", () => monitor?.handBack());
part("hang-up").addEventListener("click", () => confirm("End this call?") && monitor?.hangUp());
part("whisper").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.querySelector("textarea");
  if (!field.value.trim()) return;
  monitor?.whisper(field.value.trim());
  field.value = "";
});
document.addEventListener("live", () => {
  if (monitor === null && document.querySelector("[data-over]")) leave();
});
listen.disabled = false;
