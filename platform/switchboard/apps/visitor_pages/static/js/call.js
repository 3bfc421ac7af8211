// The call: by microphone, with captions. It goes on with the chat.
import { startCall } from "/dashboard/static/js/browser-call.js";
import { describeRefusal, Refusal, request } from "./requests.js";

const CAPTION_MILLISECONDS = 1500;

export function createCall({ key, labels, find, showMessage, showState, readChat, onActive }) {
  const button = find("call");
  const mute = find("mute");
  let call = null;

  function showActive(on) {
    button.querySelector("span").textContent = on ? labels.hang_up : labels.call;
    mute.hidden = !on;
    mute.setAttribute("aria-pressed", "false");
    onActive(on);
  }

  function followCaptions(session) {
    let shown = 0;
    const timer = setInterval(async () => {
      const { entries } = await request(key, "messages", { session }).catch(() => ({ entries: [] }));
      for (const { role, content } of entries.slice(shown)) showMessage(role, content);
      shown = Math.max(shown, entries.length);
    }, CAPTION_MILLISECONDS);
    return () => clearInterval(timer);
  }

  async function begin() {
    showState(labels.microphone);
    const { session, url, token, to_number: toNumber } = await request(key, "calls", { session: readChat(), body: {} });
    let stopCaptions = () => {};
    function onState(state, message) {
      if (state === "ringing") showState(labels.ringing);
      if (state === "connected") {
        showState(labels.connected);
        stopCaptions = followCaptions(session);
      }
      if (state === "ended") {
        stopCaptions();
        call = null;
        showActive(false);
        showState(message ? labels.failed : labels.ended);
      }
    }
    return startCall({ connection: { url }, token, toNumber, onState });
  }

  button.addEventListener("click", async () => {
    if (call) return call.hangUp();
    button.disabled = true;
    try {
      if (!navigator.mediaDevices) throw new TypeError("no microphone in this frame");
      call = await begin();
      showActive(true);
    } catch (error) {
      showState(error instanceof Refusal ? describeRefusal(error, labels) : labels.no_microphone);
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
}
