// Two ways to follow live parts. Each returns a function that takes the addresses to follow from now on, and calls
// `receive` with `{part, html, is_final}`; a part that is final without `html` can no longer be followed.

const POLL_MS = 2_000;

/**
 * Follow the parts of all tabs of this browser by one stream.
 * @param {(message: {part: string, html?: string | null, is_final: boolean}) => void} receive
 * @param {() => void} fail called if the worker cannot run
 * @returns {(addresses: string[]) => void}
 */
export function followByWorker(receive, fail) {
  const worker = new SharedWorker(new URL("./live-worker.js", import.meta.url));
  worker.addEventListener("error", fail, { once: true });
  worker.port.addEventListener("message", (event) => receive(event.data));
  worker.port.start();
  return (addresses) => worker.port.postMessage(addresses);
}

/**
 * Ask for each part again and again, for browsers without shared workers.
 * @param {(message: {part: string, html?: string | null, is_final: boolean}) => void} receive
 * @returns {(addresses: string[]) => void}
 */
export function followByPolling(receive) {
  let followed = [];
  const poll = async (part) => {
    try {
      const response = await fetch(part, { redirect: "manual" });
      if (response.ok) receive({ part, html: await response.text(), is_final: response.headers.has("Live-Part-Final") });
      else if (response.status < 500) receive({ part, is_final: true });
    } catch {
      // The server cannot be reached, and is asked again.
    }
  };
  setInterval(() => followed.forEach(poll), POLL_MS);
  return (addresses) => {
    const added = addresses.filter((address) => !followed.includes(address));
    followed = addresses;
    added.forEach(poll);
  };
}
