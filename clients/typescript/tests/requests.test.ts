import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import {
  ApiError,
  ConflictError,
  ConnectionFailed,
  InvalidResponse,
  RateLimitError,
  ServerError,
  ValidationError,
} from "../src/index.js";
import { StandIn, createProblem, type StandInResponse } from "./stand_in.js";

const CREATED = { status: 201, body: { id: "e1", phone_number: "+15550100001", a_later_field: 1 } };
const BODY = { phone_number: "+15550100001" };

async function serve(context: TestContext, ...responses: StandInResponse[]): Promise<StandIn> {
  const standIn = await StandIn.serve(...responses);
  context.after(() => standIn.close());
  return standIn;
}

test("a POST is repeated with its idempotency key", async (context) => {
  const failures = [{ status: 0 }, { status: 502, body: "<h1>" }, createProblem(409, "idempotency_conflict")];
  const standIn = await serve(context, ...failures, CREATED);
  const entry = await standIn.createClient().doNotCall.createEntry(BODY);
  assert.equal(entry.id, "e1");
  assert.equal(standIn.requests.length, 4);
  assert.equal(new Set(standIn.requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
  assert.deepEqual(new Set(standIn.requests.map(({ body }) => body)), new Set([JSON.stringify(BODY)]));
  await standIn.createClient().doNotCall.createEntry(BODY, { idempotencyKey: "mine" });
  assert.equal(standIn.requests.at(-1)?.headers["idempotency-key"], "mine");
});

test("Retry-After is honored", async (context) => {
  const limited = createProblem(429, "rate_limited", { "Retry-After": "1" });
  const standIn = await serve(context, limited, CREATED);
  const started = performance.now();
  await standIn.createClient().doNotCall.createEntry(BODY);
  assert.ok(performance.now() - started >= 990);
});

test("a Retry-After of an hour is not waited for", async (context) => {
  const standIn = await serve(context, createProblem(429, "rate_limited", { "Retry-After": "3600" }));
  await assert.rejects(standIn.createClient().doNotCall.createEntry(BODY), RateLimitError);
  assert.equal(standIn.requests.length, 1);
});

test("the last failure is thrown", async (context) => {
  for (const [response, kind] of [
    [createProblem(500, "internal_error"), ServerError],
    [{ status: 0 }, ConnectionFailed],
  ] as const) {
    const standIn = await serve(context, response);
    await assert.rejects(standIn.createClient({ maxRetries: 1 }).calls.list(), kind);
    assert.equal(standIn.requests.length, 2);
  }
});

test("an error that stays is not repeated", async (context) => {
  for (const [response, kind] of [
    [createProblem(409, "invalid_state"), ConflictError],
    [createProblem(402, "insufficient_balance"), ApiError],
    [createProblem(422, "validation_error"), ValidationError],
    [{ status: 200, body: "<h1>Sign in</h1>" }, InvalidResponse],
  ] as const) {
    const standIn = await serve(context, response);
    await assert.rejects(standIn.createClient().calls.list(), kind);
    assert.equal(standIn.requests.length, 1);
  }
});

test("an error says what the server said", async (context) => {
  const standIn = await serve(context, createProblem(422, "validation_error"));
  await assert.rejects(standIn.createClient().calls.list(), {
    name: "ValidationError",
    message: "422 validation_error No. a: b",
    status: 422,
    code: "validation_error",
    requestId: "r1",
  });
});

test("a request can be aborted, also between two attempts", async (context) => {
  const standIn = await serve(context, createProblem(429, "rate_limited", { "Retry-After": "30" }));
  const signal = AbortSignal.timeout(100);
  await assert.rejects(standIn.createClient().calls.list({}, { signal }), (error: Error) => /Abort|Timeout/.test(error.name));
});

test("ids and queries are encoded", async (context) => {
  const standIn = await serve(context, CREATED);
  const client = standIn.createClient();
  await client.contacts.get("../calls?x");
  await client.contacts.list({ search: "a&b", limit: 5 });
  assert.deepEqual(
    standIn.requests.map(({ url }) => url),
    ["/v1/contacts/..%2Fcalls%3Fx", "/v1/contacts?search=a%26b&limit=5"],
  );
});

test("a page iterates over all pages, without items that moved to a later one", async (context) => {
  const standIn = await serve(
    context,
    { status: 200, body: { items: [{ id: "c" }, { id: "b" }], total: 3, limit: 2, offset: 0 } },
    { status: 200, body: { items: [{ id: "b" }, { id: "a" }], total: 4, limit: 2, offset: 2 } },
  );
  const page = await standIn.createClient().contacts.list({ search: "x" });
  const ids = [];
  for await (const contact of page) {
    ids.push(contact.id);
  }
  assert.deepEqual(ids, ["c", "b", "a"]);
  assert.deepEqual(
    standIn.requests.map(({ url }) => url),
    ["/v1/contacts?search=x", "/v1/contacts?search=x&offset=2"],
  );
});
