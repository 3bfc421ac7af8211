// Talks to an agent by microphone, over the platform's own socket (docs/how-to/browser-calls.md).
import { measureLoudness } from "./level.js";
import { openMicrophone } from "./microphone.js";
import { followCall } from "./monitor.js";
import { openSpeaker } from "./speaker.js";

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
  const speaker = await openSpeaker();
  let socket = null;
  let message = null;
  const send = (data) => socket?.readyState === WebSocket.OPEN && socket.send(data);
  const sendMessage = (body) => send(JSON.stringify(body));
  const microphone = await openMicrophone({ onAudio: send, onLevel: (you) => onLevel({ you }) }).catch(async (error) => {
    await speaker.close();
    throw error;
  });

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
    const samples = new Int16Array(data);
    onLevel({ agent: measureLoudness(samples) });
    speaker.play(samples);
  };
  webSocket.onerror = () => (message ??= "The connection was lost.");
  webSocket.onclose = async () => {
    await Promise.allSettled([microphone.close(), speaker.close()]);
    onState("ended", message);
  };
  return { hangUp: () => (socket ? sendMessage({ event: "hang_up" }) : webSocket.close()), press: (digit) => sendMessage({ event: "digit", digit }), mute: microphone.mute };
}

function ignore() {}
