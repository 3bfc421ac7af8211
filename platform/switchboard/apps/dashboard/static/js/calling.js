// Shared by the pages on which a person talks in the browser.
import { _ } from "./messages.js";

/** Modules that call and wait for calls, by the `sdk` of a token's connection. */
export const CALL_MODULES = { "switchboard-loopback": "./browser-call.js", "twilio-voice": "./twilio-call.js", "telnyx-webrtc": "./telnyx-call.js" };

const FAULTS = {
  NotAllowedError: _("Access to the microphone was denied. Allow it for this page in your browser, then try again."),
  NotFoundError: _("No microphone was found."),
  NotReadableError: _("The microphone is in use by another program."),
};

/** @returns {string} the reason why a call could not begin, for people */
export function describeFault(error) {
  return FAULTS[error.name] ?? error.message;
}

/** Browsers give microphones to secure pages only. */
export function requireMicrophone() {
  if (!navigator.mediaDevices) throw new Error(_("Browsers allow the microphone only on HTTPS pages."));
}

/**
 * Post fields to the server.
 * @param {string} csrf  The page's token.
 * @returns {Promise<object>} the server's response; rejects with its error message
 */
export async function postForm(csrf, address, fields = {}) {
  const response = await fetch(address, { method: "POST", body: new URLSearchParams({ csrf_token: csrf, ...fields }) });
  const body = await response.json().catch(() => ({ fault: _("This page is out of date. Reload it.") }));
  if (!response.ok || body.fault) throw new Error(body.fault);
  return body;
}

/** Show the duration of a call each second. Returns a function that stops. */
export function showDuration(show) {
  const connectedAt = Date.now();
  const update = () => show(_("Connected, {time}", { time: formatTime(Math.floor((Date.now() - connectedAt) / 1000)) }));
  update();
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
}

function formatTime(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
