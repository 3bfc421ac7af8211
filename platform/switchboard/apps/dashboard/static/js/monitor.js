// Monitors a live call: audio, transcript, whispering, and takeover. The protocol is in docs/reference/live-call-socket.md.
import { openMicrophone } from "./microphone.js";
import { openSpeaker } from "./speaker.js";
import { _ } from "./messages.js";

const PING_MILLISECONDS = 2000;

/**
 * @typedef {object} Entry  A transcript entry.
 * @property {"user" | "agent" | "tool" | "system"} role
 * @property {string} content
 * @property {number} timestamp_ms
 * @property {number} ended_ms
 * @property {boolean} interrupted
 * @property {boolean} backchannel
 * @property {boolean} by_person
 * @property {string | null} person  The name of the user who spoke, whispered, took over, or handed back.
 */

/**
 * @typedef {object} State
 * @property {{name: string, you: boolean} | null} holder  The person who has the call; null while the agent has it.
 * @property {"listening" | "thinking" | "speaking" | "silent"} agent
 */

/**
 * @typedef {object} Options
 * @property {string} url  The address of a ticket.
 * @property {boolean} [sound]  Whether to play the call's audio; requires a click handler.
 * @property {(state: State) => void} [onState]
 * @property {(entry: Entry) => void} [onTranscript]
 * @property {(levels: {caller: number, agent: number}) => void} [onLevel]
 * @property {(message: string) => void} [onRefused]  A request was refused, or the microphone is not available.
 * @property {(reason: string | null) => void} [onEnded]  Called once, when the call has ended, or (null) the connection was lost.
 */

/**
 * @typedef {object} Monitor
 * @property {() => Promise<void>} takeOver  Asks for the microphone first.
 * @property {() => void} handBack
 * @property {() => void} hangUp
 * @property {(text: string) => void} whisper
 * @property {(muted: boolean) => void} mute  Mute one's own microphone.
 * @property {() => Promise<void>} close
 */

/**
 * Monitor a call.
 * @param {Options} options
 * @returns {Promise<Monitor>}
 */
export async function followCall(options) {
  const { url, sound = false } = options;
  const { onState = ignore, onTranscript = ignore, onLevel = ignore, onRefused = ignore, onEnded = ignore } = options;
  const speaker = sound ? await openSpeaker(2) : null;
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  let microphone = null;
  // True from the click until the response: the microphone stays open although the call is not taken over yet.
  let isRequesting = false;
  let hasCall = false;
  let reason = null;

  const sendMessage = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  let pingedAt = 0;

  async function releaseMicrophone() {
    const open = microphone;
    microphone = null;
    await open?.close();
  }

  function handleState(state) {
    hasCall = state.holder?.you === true;
    // Do not play one's own voice.
    speaker?.mute([false, hasCall]);
    if (hasCall) isRequesting = false;
    else if (!isRequesting) releaseMicrophone();
    onState(state);
  }

  socket.onmessage = ({ data }) => {
    // Triggered by messages instead of a timer, because browsers throttle the timers of background pages.
    if (Date.now() - pingedAt > PING_MILLISECONDS) {
      pingedAt = Date.now();
      sendMessage({ type: "ping" });
    }
    if (typeof data !== "string") return speaker?.play(new Int16Array(data));
    const { type, ...message } = JSON.parse(data);
    if (type === "state") handleState(message);
    else if (type === "transcript") onTranscript(message.entry);
    else if (type === "levels") onLevel(message);
    else if (type === "ended") reason = message.reason;
    else if (type === "refused") {
      if (message.action === "take_over" && !hasCall) {
        isRequesting = false;
        releaseMicrophone();
      }
      onRefused(message.message);
    }
  };
  socket.onclose = async () => {
    await Promise.allSettled([releaseMicrophone(), speaker?.close()]);
    onEnded(reason);
  };

  async function takeOver() {
    if (microphone !== null || isRequesting) return;
    isRequesting = true;
    try {
      microphone = await openMicrophone({ onAudio: (samples) => hasCall && socket.readyState === WebSocket.OPEN && socket.send(samples) });
      sendMessage({ type: "take_over" });
    } catch (error) {
      isRequesting = false;
      onRefused(_("The microphone cannot be used: {message}", { message: error.message }));
    }
  }

  return {
    takeOver,
    handBack: () => sendMessage({ type: "hand_back" }),
    hangUp: () => sendMessage({ type: "hang_up" }),
    whisper: (text) => sendMessage({ type: "whisper", text }),
    mute: (muted) => microphone?.mute(muted),
    close: async () => socket.close(),
  };
}

function ignore() {}
