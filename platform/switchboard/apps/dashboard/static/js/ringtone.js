// Rings like a telephone: one second of two tones, three of silence.
const TONES = [440, 480];
const PERIOD_SECONDS = 4;
const RINGS = 15;

/** Ring for a minute at most. Returns a function that stops. */
export function startRinging() {
  const context = new AudioContext();
  const volume = new GainNode(context, { gain: 0 });
  volume.connect(context.destination);
  for (let ring = 0; ring < RINGS; ring++) {
    volume.gain.setValueAtTime(0.1, context.currentTime + ring * PERIOD_SECONDS);
    volume.gain.setValueAtTime(0, context.currentTime + ring * PERIOD_SECONDS + 1);
  }
  for (const frequency of TONES) {
    const tone = new OscillatorNode(context, { frequency });
    tone.connect(volume);
    tone.start();
  }
  return () => context.close();
}
