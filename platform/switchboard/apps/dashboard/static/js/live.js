// Live parts of a page, which the server renders again: `<div data-live="address">`.
import { followByPolling, followByWorker } from "./live-sources.js";

// The worker forgets a tab that it has not heard from for longer.
const STILL_HERE_MS = 10_000;

/** @type {Map<Element, (html: string) => void>} */
const parts = new Map();
let follow = null;

/**
 * Keep every live part within an element up to date, as long as the page is visible (or the part has
 * `data-live-hidden`) and the part in it.
 * @param {ParentNode} within
 */
export function keepLive(within) {
  for (const part of within.querySelectorAll("[data-live]")) parts.set(part, showIn(part));
  if (parts.size) start();
}

function start() {
  if (follow) return update();
  follow = "SharedWorker" in window ? followByWorker(receive, fallBack) : followByPolling(receive);
  setInterval(update, STILL_HERE_MS);
  document.addEventListener("visibilitychange", update);
  addEventListener("pageshow", update);
  addEventListener("pagehide", () => follow([]));
  update();
}

function fallBack() {
  follow = followByPolling(receive);
  update();
}

function update() {
  for (const part of parts.keys()) if (!part.isConnected) parts.delete(part);
  const followed = [...parts.keys()].filter((part) => !document.hidden || "liveHidden" in part.dataset);
  follow([...new Set(followed.map((part) => part.dataset.live))]);
}

function receive({ part: address, html, is_final: isFinal }) {
  for (const [part, show] of parts) {
    if (part.dataset.live !== address) continue;
    if (typeof html === "string") show(html);
    if (isFinal) parts.delete(part);
  }
  if (isFinal) update();
}

function showIn(part) {
  let shown = null;
  let waiting = null;
  const show = () => {
    // Do not replace a part while an element in it has focus.
    if (waiting === null || part.matches(":focus-within:not(:focus)")) return;
    part.innerHTML = shown = waiting;
    waiting = null;
    part.dispatchEvent(new CustomEvent("live", { bubbles: true }));
  };
  part.addEventListener("focusout", () => setTimeout(show));
  return (html) => {
    if (html === (waiting ?? shown)) return;
    waiting = html;
    show();
  };
}
