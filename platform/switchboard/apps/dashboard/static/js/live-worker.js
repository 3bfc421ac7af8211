// A shared worker: follows the live parts of all tabs of this browser by one stream, because a browser opens six
// connections to a host at most. Each tab posts the addresses of its parts, none while it is hidden.

const GONE_MS = 30_000;
const GATHER_MS = 50;
const RETRY_MS = 5_000;

/** @type {Map<MessagePort, {addresses: string[], heard: number}>} */
const tabs = new Map();
let stream = null;
let followed = "";
let changing = null;

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: addresses }) => {
    tabs.set(port, { addresses, heard: Date.now() });
    changing ??= setTimeout(change, GATHER_MS);
  };
};

setInterval(change, GONE_MS);

function change() {
  changing = null;
  for (const [port, tab] of tabs) if (!tab.addresses.length || tab.heard < Date.now() - GONE_MS) tabs.delete(port);
  const addresses = [...new Set([...tabs.values()].flatMap((tab) => tab.addresses))].sort();
  const wanted = new URLSearchParams(addresses.map((address) => ["part", address])).toString();
  if (wanted === followed) return;
  stream?.close();
  followed = wanted;
  stream = wanted ? open(wanted) : null;
}

function open(wanted) {
  const events = new EventSource(`/dashboard/live-parts?${wanted}`);
  events.onmessage = (event) => tell(JSON.parse(event.data));
  // Signed out, or signed in to another organization.
  events.addEventListener("over", end);
  // The browser connects again by itself, unless it was refused: by a server that is not ready, for example.
  events.onerror = () => events.readyState === EventSource.CLOSED && setTimeout(() => reopen(events), RETRY_MS);
  return events;
}

function reopen(refused) {
  if (stream === refused) stream = open(followed);
}

function end() {
  stream.close();
  for (const part of new URLSearchParams(followed).getAll("part")) tell({ part, is_final: true });
}

function tell(message) {
  for (const [port, { addresses }] of tabs) if (addresses.includes(message.part)) port.postMessage(message);
}
