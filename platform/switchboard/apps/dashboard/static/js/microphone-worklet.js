// In the audio thread: converts microphone audio to 16-bit samples at 8 kHz, in blocks of 40 ms.

const RATE = 8000;
const BLOCK = 320;
// The filter covers the same time at every sample rate; its length is even.
const TAPS = 2 * Math.ceil((32 * sampleRate) / 48000);
const PHASES = 64;

/** Windowed sinc low-pass filters with a cutoff of 3.8 kHz, one for each of PHASES positions between two samples. */
function filters() {
  const cutoff = (0.95 * RATE) / 2 / sampleRate;
  return Array.from({ length: PHASES }, (_, phase) => {
    const taps = Float32Array.from({ length: TAPS }, (_, tap) => {
      const x = tap - TAPS / 2 + 1 - phase / PHASES;
      const sinc = x === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * x) / (Math.PI * x);
      return sinc * (0.5 + 0.5 * Math.cos((2 * Math.PI * x) / TAPS));
    });
    const sum = taps.reduce((total, tap) => total + tap, 0);
    return taps.map((tap) => tap / sum);
  });
}

class Microphone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = sampleRate / RATE;
    this.filters = filters();
    this.input = new Float32Array(TAPS - 1);
    this.position = 0;
    this.block = new Int16Array(BLOCK);
    this.filled = 0;
  }

  process([[samples]]) {
    if (!samples) return true;
    const input = new Float32Array(this.input.length + samples.length);
    input.set(this.input);
    input.set(samples, this.input.length);
    while (Math.floor(this.position) + TAPS <= input.length) {
      this.put(input, Math.floor(this.position), this.filters[Math.floor((this.position % 1) * PHASES)]);
      this.position += this.step;
    }
    const used = Math.min(Math.floor(this.position), input.length);
    this.input = input.slice(used);
    this.position -= used;
    return true;
  }

  put(input, start, taps) {
    let sum = 0;
    for (let tap = 0; tap < TAPS; tap++) sum += input[start + tap] * taps[tap];
    this.block[this.filled++] = Math.max(-32768, Math.min(32767, Math.round(sum * 32767)));
    if (this.filled < BLOCK) return;
    this.port.postMessage(this.block, [this.block.buffer]);
    this.block = new Int16Array(BLOCK);
    this.filled = 0;
  }
}

registerProcessor("microphone", Microphone);
