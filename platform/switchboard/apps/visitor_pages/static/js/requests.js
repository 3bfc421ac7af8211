// Requests of the widget to its server.

/** A refused request. `code` is the API's code of the error. */
export class Refusal extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/**
 * @param {string} path  Below the widget's address, such as `messages`.
 * @param {{session?: string | null, body?: object}} options  A request with a body is a POST.
 */
export async function request(key, path, { session, body } = {}) {
  const headers = { "Content-Type": "application/json", ...(session && { Authorization: `Bearer ${session}` }) };
  const response = await fetch(`/widget/${key}/${path}`, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(answer.code);
  return answer;
}

/** Words for a failed request. */
export function describeRefusal(error, labels) {
  return { rate_limited: labels.limit, spend_limit_reached: labels.spent }[error.code] ?? labels.failed;
}
