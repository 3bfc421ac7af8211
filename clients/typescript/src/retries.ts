/**
 * Decision whether a request is sent again, and when.
 *
 * Every method may be repeated: POST carries an `Idempotency-Key`, and the server returns its first response again.
 * Times are in milliseconds.
 */

import type { Problem } from "./errors.js";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 8_000;
/** A server that asks for more is not waited for: the error is thrown at once. */
const LONGEST_RETRY_AFTER = 60_000;

/** Return the time until the next attempt, undefined if there is none. `attempt` counts from 0. */
export function findDelay(attempt: number, maxRetries: number, response?: Response, problem?: Problem): number | undefined {
  if (attempt >= maxRetries || (response && !isTemporary(response, problem))) {
    return undefined;
  }
  const retryAfter = response?.headers.get("Retry-After") ?? "";
  if (/^[0-9]+$/.test(retryAfter)) {
    const delay = Number(retryAfter) * 1000;
    return delay <= LONGEST_RETRY_AFTER ? delay : undefined;
  }
  // Half of the delay is random, so that clients which failed together do not return together.
  return Math.min(FIRST_DELAY * 2 ** attempt, LONGEST_DELAY) * (0.5 + Math.random() / 2);
}

/** 429, 5xx, or a 409 that says that the first attempt is still running. */
function isTemporary(response: Response, problem?: Problem): boolean {
  return (
    response.status === 429 ||
    response.status >= 500 ||
    (response.status === 409 && problem?.code === "idempotency_conflict")
  );
}
