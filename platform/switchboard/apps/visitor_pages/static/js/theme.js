// The widget's color and corner.

/** @param {string} color  Such as `#0f766e`. */
function measureLuminance(color) {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(color.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Text on the color is black or white, whichever has more contrast: at least 4.58 to 1 on every color (WCAG 2.2, 1.4.3). */
export function applyTheme({ color, position }) {
  const { style } = document.documentElement;
  style.setProperty("--accent", color);
  style.setProperty("--on-accent", measureLuminance(color) > 0.179 ? "#000" : "#fff");
  document.body.classList.toggle("left", position === "left");
}
