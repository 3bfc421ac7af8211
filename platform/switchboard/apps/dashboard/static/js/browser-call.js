// Calls, and waits for calls, by microphone, over the platform's own socket (docs/how-to/browser-calls.md).
import { measureLoudness } from "./level.js";
import { openMicrophone } from "./microphone.js";
import { followCall } from "./monitor.js";
import { askForMicrophone } from "./sdk-call.js";
import { openSpeaker } from "./speaker.js";
import { _ } from "./messages.js";

/**
 * @typedef {object} Options
 * @property {{url: string}} connection  The token's `connection`, whose `sdk` is `switchboard-loopback`.
 * @property {string} token
 * @property {string} toNumber  The number to call.
 * @property {string} [fromNumber]  The caller ID: one of the organization's phone numbers.
 * @property {(callId: string) => Promise<string>} [transcriptOf]  Returns the address of a transcript ticket for a call, by the carrier's call id.
 * @property {(entry: import("./monitor.js").Entry) => void} [onTranscript]
 * @property {(levels: {you?: number, agent?: number}) => void} [onLevel]  Volume from 0 to 1; `you` and `agent` are reported separately.
 * @property {(state: "ringing" | "connected" | "ended", message: string | null) => void} [onState]  With a message if the call failed.
 */

/**
 * @typedef {object} BrowserCall
 * @property {() => void} hangUp
 * @property {(digit: string) => void} press
 * @property {(muted: boolean) => void} mute
 */

/**
 * Start a call. Must run in a click handler. Rejects with the browser's error if the microphone is not available.
 * @param {Options} options
 * @returns {Promise<BrowserCall>}
 */
export async function startCall(options) {
  const { connection, token, toNumber, fromNumber = "", transcriptOf } = options;
  const { onTranscript = ignore, onLevel = ignore, onState = ignore } = options;
  let socket = null;
  let message = null;
  const send = (data) => socket?.readyState === WebSocket.OPEN && socket.send(data);
  const sendMessage = (body) => send(JSON.stringify(body));
  const audio = await openAudio({ send, onLevel });

  async function handleConnected(callId) {
    onState("connected", null);
    if (transcriptOf) await followCall({ url: await transcriptOf(callId), onTranscript });
  }

  // The first message must precede any audio.
  const webSocket = new WebSocket(connection.url);
  webSocket.binaryType = "arraybuffer";
  webSocket.onopen = () => {
    webSocket.send(JSON.stringify({ event: "dial", token, to_number: toNumber, from_number: fromNumber }));
    socket = webSocket;
    onState("ringing", null);
  };
  webSocket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      const received = JSON.parse(data);
      if (received.event === "connected") handleConnected(received.call_id).catch((error) => console.warn("no live transcript:", error));
      else if (received.event === "ended") message = received.message;
      return;
    }
    audio.play(data);
  };
  webSocket.onerror = () => (message ??= _("The connection was lost."));
  webSocket.onclose = async () => {
    await audio.close();
    onState("ended", message);
  };
  return { hangUp: () => (socket ? sendMessage({ event: "hang_up" }) : webSocket.close()), press: (digit) => sendMessage({ event: "digit", digit }), mute: audio.mute };
}

/**
 * @typedef {object} IncomingLine  A registration that takes one call.
 * @property {() => Promise<void>} answer  Must run in a click handler. Rejects with the browser's error if the microphone is not available.
 * @property {() => void} decline
 * @property {() => void} hangUp
 * @property {(digit: string) => void} press
 * @property {(muted: boolean) => void} mute
 * @property {() => void} close  End the call, if there is one, and the registration.
 */

/**
 * Wait for one call. Rejects with the browser's error if the microphone is not available.
 * @param {object} options
 * @param {{url: string}} options.connection  The token's `connection`.
 * @param {string} options.token  A token with an identity.
 * @param {(levels: {you?: number, agent?: number}) => void} [options.onLevel]  `agent` is the other party.
 * @param {(state: "waiting" | "ringing" | "connected" | "ended", detail: string | null) => void} [options.onState]
 *   `ringing` with the caller's number, `waiting` again if the call is canceled, and `ended` with a message after a fault.
 * @returns {Promise<IncomingLine>}
 */
export async function waitForCall({ connection, token, onLevel = ignore, onState = ignore }) {
  await askForMicrophone();
  const webSocket = new WebSocket(connection.url);
  webSocket.binaryType = "arraybuffer";
  let audio = null;
  let message = null;
  const send = (data) => webSocket.readyState === WebSocket.OPEN && webSocket.send(data);
  const sendMessage = (body) => send(JSON.stringify(body));
  const closeAudio = async () => {
    const opened = audio;
    audio = null;
    await opened?.close();
  };
  const handlers = {
    registered: () => onState("waiting", null),
    ringing: ({ from_number: caller }) => onState("ringing", caller),
    canceled: () => closeAudio().then(() => onState("waiting", null)),
    connected: () => onState("connected", null),
    ended: (received) => (message = received.message),
  };

  webSocket.onopen = () => sendMessage({ event: "register", token });
  webSocket.onmessage = ({ data }) => {
    if (typeof data !== "string") return audio?.play(data);
    const received = JSON.parse(data);
    handlers[received.event]?.(received);
  };
  webSocket.onerror = () => (message ??= _("The connection was lost."));
  webSocket.onclose = async () => {
    await closeAudio();
    onState("ended", message);
  };
  return {
    async answer() {
      audio = await openAudio({ send, onLevel });
      sendMessage({ event: "answer" });
    },
    decline: () => sendMessage({ event: "decline" }),
    hangUp: () => sendMessage({ event: "hang_up" }),
    press: (digit) => sendMessage({ event: "digit", digit }),
    mute: (muted) => audio?.mute(muted),
    close: () => webSocket.close(),
  };
}

/** Open the speaker, and the microphone, whose samples go to `send`. */
async function openAudio({ send, onLevel }) {
  const speaker = await openSpeaker();
  const microphone = await openMicrophone({ onAudio: send, onLevel: (you) => onLevel({ you }) }).catch(async (error) => {
    await speaker.close();
    throw error;
  });
  return {
    play(data) {
      const samples = new Int16Array(data);
      onLevel({ agent: measureLoudness(samples) });
      speaker.play(samples);
    },
    mute: microphone.mute,
    close: () => Promise.allSettled([microphone.close(), speaker.close()]),
  };
}

function ignore() {}
