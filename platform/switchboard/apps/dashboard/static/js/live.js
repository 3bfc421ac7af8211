// Live parts of a page, which the server renders again: `<div data-live="address">`.

/**
 * Keep every live part within an element up to date. The stream of a removed part is closed.
 * @param {ParentNode} within
 */
export function keepLive(within) {
  for (const part of within.querySelectorAll("[data-live]")) {
    const events = new EventSource(part.dataset.live);
    let waiting = null;
    const show = () => {
      // Do not replace a part while an element in it has focus.
      if (waiting === null || part.matches(":focus-within:not(:focus)")) return;
      part.innerHTML = waiting;
      waiting = null;
      part.dispatchEvent(new CustomEvent("live", { bubbles: true }));
    };
    events.addEventListener("message", (event) => {
      if (!part.isConnected) return events.close();
      waiting = event.data;
      show();
    });
    part.addEventListener("focusout", () => setTimeout(show));
    events.addEventListener("over", () => events.close());
  }
}
