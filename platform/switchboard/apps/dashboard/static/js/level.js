// Measures and shows volume.

const QUIETEST = -60;

/**
 * The root mean square of samples: 0 is silence, 1 is the maximum.
 * @param {Int16Array | Float32Array} samples
 * @param {number} loudest  The largest value of a sample.
 * @returns {number}
 */
export function measureLoudness(samples, loudest = 32768) {
  if (samples.length === 0) return 0;
  let sum = 0;
  for (const sample of samples) sum += (sample / loudest) ** 2;
  return Math.sqrt(sum / samples.length);
}

/**
 * Report the volume of a stream ten times a second.
 * @param {MediaStream} stream
 * @param {(level: number) => void} onLevel
 * @returns {() => Promise<void>}  Stops the reports.
 */
export function watchLevel(stream, onLevel) {
  const context = new AudioContext();
  const analyzer = context.createAnalyser();
  const samples = new Float32Array(analyzer.fftSize);
  context.createMediaStreamSource(stream).connect(analyzer);
  const timer = setInterval(() => {
    analyzer.getFloatTimeDomainData(samples);
    onLevel(measureLoudness(samples, 1));
  }, 100);
  return () => {
    clearInterval(timer);
    return context.close();
  };
}

/**
 * Show a volume on a `<meter min="0" max="1">` in decibels; the meter falls slowly, and at once when nothing is measured any more.
 * @param {HTMLMeterElement} meter
 * @returns {(level: number | null) => void}  Without a level, nothing is measured.
 */
export function showLevel(meter) {
  return (level) => {
    if (level === null) return void (meter.value = 0);
    const shownLevel = level > 0 ? Math.max(0, 1 - (20 * Math.log10(level)) / QUIETEST) : 0;
    meter.value = Math.max(shownLevel, meter.value * 0.8);
  };
}
