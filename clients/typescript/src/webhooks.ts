/** Verification of webhook requests. */

import { createHmac, timingSafeEqual } from "node:crypto";

import { InvalidSignature } from "./errors.js";
import type { WebhookEvent } from "./generated/resources.js";

/** Headers as `fetch` has them, or as Node's HTTP server and its frameworks do. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/** `tolerance`: greatest age of the signature in seconds. */
export interface VerifyOptions {
  tolerance?: number;
}

const SIGNATURE_HEADER = "x-webhook-signature";
const DEFAULT_TOLERANCE = 300;

/**
 * Return the event of a webhook request.
 *
 * `body`: the raw bytes, before any parsing. `secret`: the endpoint's, with `whsec_`. Throws `InvalidSignature`.
 */
export function verify(
  body: Uint8Array | string,
  headers: WebhookHeaders,
  secret: string,
  { tolerance = DEFAULT_TOLERANCE }: VerifyOptions = {},
): WebhookEvent {
  const raw = Buffer.from(body);
  const [timestamp, signatures] = parseSignature(getHeader(headers, SIGNATURE_HEADER));
  const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(raw).digest();
  if (!signatures.some((value) => value.length === expected.length && timingSafeEqual(value, expected))) {
    throw new InvalidSignature("No signature was made with this secret.");
  }
  if (Math.abs(Date.now() / 1000 - timestamp) > tolerance) {
    throw new InvalidSignature(`The signature is more than ${tolerance} seconds old.`);
  }
  return JSON.parse(raw.toString()) as WebhookEvent;
}

/** Return the time and the signatures of `t=1764000000,v1=…`, with a second `v1` while a secret is rotated. */
function parseSignature(header: string): [number, Buffer[]] {
  const parts = header.split(",").map((part) => part.split("=", 2));
  const times = parts.filter(([name, value]) => name === "t" && /^[0-9]+$/.test(value ?? ""));
  if (times.length !== 1) {
    throw new InvalidSignature("The request has no X-Webhook-Signature with one time.");
  }
  const signatures = parts.filter(([name]) => name === "v1").map(([, value]) => Buffer.from(value ?? "", "hex"));
  return [Number(times[0]?.[1]), signatures];
}

function getHeader(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) {
    return headers.get(name) ?? "";
  }
  return String(Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1] ?? "");
}
