// The microphone: 16-bit samples, one channel, 8 kHz, in blocks of 40 ms.
import { measureLoudness } from "./level.js";

/**
 * @typedef {object} Microphone
 * @property {(muted: boolean) => void} mute  Send silence instead of audio.
 * @property {() => Promise<void>} close  Release the microphone.
 */

/**
 * Open the microphone. Rejects with the browser's error if the user denies access or there is no microphone.
 * @param {{onAudio: (samples: Int16Array) => void, onLevel?: (level: number) => void}} options
 * @returns {Promise<Microphone>}
 */
export async function openMicrophone({ onAudio, onLevel = () => {} }) {
  const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  const stream = await navigator.mediaDevices.getUserMedia({ audio });
  const context = new AudioContext();
  let muted = false;
  try {
    await context.audioWorklet.addModule(new URL("./microphone-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = ({ data }) => {
      if (muted) data.fill(0);
      onAudio(data);
      onLevel(measureLoudness(data));
    };
    context.createMediaStreamSource(stream).connect(node);
    await context.resume();
  } catch (error) {
    await release(stream, context);
    throw error;
  }
  return { mute: (now) => (muted = now), close: () => release(stream, context) };
}

async function release(stream, context) {
  for (const track of stream.getTracks()) track.stop();
  if (context.state !== "closed") await context.close();
}
