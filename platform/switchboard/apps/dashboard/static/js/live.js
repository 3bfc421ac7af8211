// Parts of a page that the server renders again while one looks: `<div data-live="address">`.

/**
 * Keep every live part within an element up to date; a part that is taken away is let go of.
 * @param {ParentNode} within
 */
export function keepLive(within) {
  for (const part of within.querySelectorAll("[data-live]")) {
    const events = new EventSource(part.dataset.live);
    let waiting = null;
    const show = () => {
      // What somebody is about to use stays under their finger, until they leave it.
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
