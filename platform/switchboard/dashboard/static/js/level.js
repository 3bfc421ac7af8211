// How loud something is, and showing it.

const QUIETEST = -60;

/**
 * The root mean square of samples: 0 is silence, 1 as loud as can be.
 * @param {Int16Array} samples
 * @returns {number}
 */
export function loudness(samples) {
  if (samples.length === 0) return 0;
  let sum = 0;
  for (const sample of samples) sum += (sample / 32768) ** 2;
  return Math.sqrt(sum / samples.length);
}

/**
 * Show a loudness on a `<meter min="0" max="1">`, by decibels, as ears hear it; it falls slowly.
 * @param {HTMLMeterElement} meter
 * @returns {(level: number) => void}
 */
export function showLevel(meter) {
  return (level) => {
    const shown = level > 0 ? Math.max(0, 1 - (20 * Math.log10(level)) / QUIETEST) : 0;
    meter.value = Math.max(shown, meter.value * 0.8);
  };
}
