// Shared by calls over a carrier's client SDK (docs/how-to/browser-calls.md).
import { watchLevel } from "./level.js";
import { followCall } from "./monitor.js";
import { _ } from "./messages.js";

/**
 * Ask for the microphone before the SDK does, so that a denial is reported as the browser's own error.
 * @returns {Promise<void>}
 */
export async function askForMicrophone() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  for (const track of stream.getTracks()) track.stop();
}

/**
 * Report the volume of a call's streams, as far as the SDK provides them. Returns a function that stops.
 * @param {{you?: MediaStream, agent?: MediaStream}} streams
 * @param {(levels: {you?: number, agent?: number}) => void} onLevel
 */
export function watchStreams(streams, onLevel) {
  const given = Object.entries(streams).filter(([, stream]) => stream);
  const stops = given.map(([side, stream]) => watchLevel(stream, (level) => onLevel({ [side]: level })));
  return () => stops.splice(0).forEach((stop) => stop());
}

/**
 * Report each state of a call once, and monitor it from answer to end.
 * @param {Pick<import("./browser-call.js").Options, "transcriptOf" | "onTranscript" | "onLevel" | "onState">} options
 */
export function reportStates({ transcriptOf, onTranscript = ignore, onLevel = ignore, onState = ignore }) {
  const reported = new Set();
  let stopWatching = () => {};
  const report = (state, message) => {
    if (reported.has("ended") || reported.has(state)) return false;
    reported.add(state);
    onState(state, message);
    return true;
  };

  return {
    ringing: () => report("ringing", null),

    /** `callId` is the carrier's call id; `you` and `agent` are the audio streams, if the SDK provides them. */
    connected(callId, you, agent) {
      if (!report("connected", null)) return;
      stopWatching = watchStreams({ you, agent }, onLevel);
      if (transcriptOf) followTranscript(callId).catch((error) => console.warn("no live transcript:", error));
    },

    /** Report the end, with a message if the call failed. Returns false if it was reported before. */
    ended(message) {
      stopWatching();
      return report("ended", message);
    },
  };

  async function followTranscript(callId) {
    if (!callId) throw new Error(_("the carrier's SDK does not say which call it is"));
    await followCall({ url: await transcriptOf(callId), onTranscript });
  }
}

function ignore() {}
