// Notifies the user of waiting callers and conversations, in one tab of this browser: the one that holds the lock.
import { keepLive } from "./live.js";
import { startRinging } from "./ringtone.js";
import { _ } from "./messages.js";

const RING_MS = 4_000;
const place = document.querySelector("[data-attention]");
const button = document.querySelector("[data-notify]");
const NAMES = { calls: [_("A caller waits for a person"), "/dashboard/call-queue"], texts: [_("A text message waits for a person"), "/dashboard/texts?show=waiting"] };

const isOn = () => localStorage.getItem("attention") === "on" && "Notification" in window && Notification.permission === "granted";
const idsOf = (text) => (text ?? "").split(" ").filter(Boolean);

function notify(kind) {
  const [title, address] = NAMES[kind];
  const shown = new Notification(title, { tag: `switchboard-${kind}`, requireInteraction: kind === "calls" });
  shown.onclick = () => {
    window.focus();
    location.assign(address);
  };
  const stop = startRinging();
  setTimeout(stop, kind === "calls" ? RING_MS : 1_000);
}

/** Compare with what was shown last, in whichever tab: a tab that opens must not notify again. */
function handleAttention(part) {
  const found = part.querySelector("[data-calls]")?.dataset;
  if (!found || !isOn()) return;
  for (const kind of ["calls", "texts"]) {
    const before = idsOf(localStorage.getItem(`attention-${kind}`));
    const now = idsOf(found[kind]);
    localStorage.setItem(`attention-${kind}`, now.join(" "));
    if (now.some((id) => !before.includes(id))) notify(kind);
  }
}

function lead() {
  const part = document.createElement("div");
  part.dataset.live = place.dataset.attention;
  part.dataset.liveHidden = "";
  part.addEventListener("live", () => handleAttention(part));
  place.append(part);
  keepLive(place);
  return new Promise(() => {});
}

let isAsking = false;
function start() {
  if (isAsking || !isOn() || !navigator.locks) return;
  isAsking = true;
  navigator.locks.request("switchboard-attention", lead);
}

function showButton() {
  if (!button) return;
  button.hidden = false;
  button.setAttribute("aria-pressed", String(isOn()));
  button.querySelector("span").textContent = isOn() ? _("Notifications are on") : _("Notify me");
}

button?.addEventListener("click", async () => {
  const fault = document.querySelector("[data-notify-fault]");
  const allowed = "Notification" in window && navigator.locks && (await Notification.requestPermission()) === "granted";
  fault.hidden = Boolean(allowed);
  fault.textContent = allowed ? "" : _("Your browser does not allow notifications for this site. It needs HTTPS and your permission.");
  localStorage.setItem("attention", allowed && !isOn() ? "on" : "off");
  showButton();
  start();
});

if (place) {
  showButton();
  start();
}
