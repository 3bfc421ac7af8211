// Plays a call: 16-bit samples at 8 kHz, as they arrive.

const RATE = 8000;

/**
 * @typedef {object} Speaker
 * @property {(samples: Int16Array) => void} play  Play interleaved samples.
 * @property {(muted: boolean[]) => void} mute  Mute channels.
 * @property {() => Promise<void>} close
 */

/**
 * Open audio output, which browsers allow after a click.
 * @param {number} channels  The number of channels, which are mixed into one.
 * @returns {Promise<Speaker>}
 */
export async function openSpeaker(channels = 1) {
  const context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
  try {
    await context.audioWorklet.addModule(new URL("./speaker-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "speaker", { numberOfInputs: 0, outputChannelCount: [1], processorOptions: { channels } });
    node.connect(context.destination);
    await context.resume();
    return {
      play: (samples) => node.port.postMessage(samples),
      mute: (muted) => node.port.postMessage({ muted }),
      close: () => context.close(),
    };
  } catch (error) {
    await context.close();
    throw error;
  }
}
