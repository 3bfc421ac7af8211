// Plays a call: 16-bit samples at 8 kHz, as they come.

const RATE = 8000;

/**
 * @typedef {object} Speaker
 * @property {(samples: Int16Array) => void} play  What comes next, all channels of a moment side by side.
 * @property {(muted: boolean[]) => void} mute  Which channels are not to be heard.
 * @property {() => Promise<void>} close
 */

/**
 * Open the loudspeaker; browsers allow it after a click.
 * @param {number} channels  How many the samples have; all are mixed into one.
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
