// Parts of a page that the server renders again while one looks: `<div data-live="address">`.

/**
 * Keep every live part within an element up to date; a part that is taken away is let go of.
 * @param {ParentNode} within
 */
export function keepLive(within) {
  for (const part of within.querySelectorAll("[data-live]")) {
    const events = new EventSource(part.dataset.live);
    events.addEventListener("message", (event) => {
      if (!part.isConnected) return events.close();
      // What somebody is about to use stays under their finger.
      if (part.contains(document.activeElement) && document.activeElement !== part) return;
      part.innerHTML = event.data;
      part.dispatchEvent(new CustomEvent("live", { bubbles: true }));
    });
    events.addEventListener("over", () => events.close());
  }
}
