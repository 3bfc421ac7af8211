// In the audio thread: plays samples with a small jitter buffer.

const BUFFER_SAMPLES = 640;
const MAX_SAMPLES = 4000;

class Speaker extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.channels = processorOptions.channels;
    this.muted = Array.from({ length: this.channels }, () => false);
    this.waiting = [];
    this.length = 0;
    this.started = false;
    this.port.onmessage = ({ data }) => (data.muted ? (this.muted = data.muted) : this.add(data));
  }

  /** Add interleaved samples. A backlog of more than half a second is dropped, because it would never be caught up. */
  add(samples) {
    for (let index = 0; index < samples.length; index += this.channels) {
      let sum = 0;
      for (let channel = 0; channel < this.channels; channel++) if (!this.muted[channel]) sum += samples[index + channel];
      this.waiting.push(Math.max(-1, Math.min(1, sum / 32768)));
    }
    if (this.waiting.length > MAX_SAMPLES) this.waiting.splice(0, this.waiting.length - BUFFER_SAMPLES);
    this.started ||= this.waiting.length >= BUFFER_SAMPLES;
  }

  process(_inputs, [outputs]) {
    const count = outputs[0].length;
    if (this.started) {
      const samples = this.waiting.splice(0, count);
      for (const output of outputs) output.set(samples);
      this.started = this.waiting.length > 0;
    }
    return true;
  }
}

registerProcessor("speaker", Speaker);
