import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { InvalidSignature, webhooks } from "../src/index.js";

const BODY = JSON.stringify({ event: "sms.sent", data: { body: "é" }, timestamp: "2026-11-20T09:30:00.000Z" });
const NOW = Math.floor(Date.now() / 1000);

function sign(secret: string, timestamp = NOW): string {
  return createHmac("sha256", secret).update(`${timestamp}.${BODY}`).digest("hex");
}

test("either secret verifies while it is rotated, with any kind of headers", () => {
  const signature = `t=${NOW},v1=${sign("whsec_new")},v1=${sign("whsec_old")}`;
  for (const headers of [new Headers({ "X-Webhook-Signature": signature }), { "x-webhook-signature": signature }]) {
    for (const secret of ["whsec_new", "whsec_old"]) {
      assert.equal(webhooks.verify(Buffer.from(BODY), headers, secret).event, "sms.sent");
    }
  }
});

test("other secrets, old signatures, and malformed headers are refused", () => {
  for (const signature of [
    `t=${NOW},v1=${sign("whsec_another")}`,
    `t=${NOW - 400},v1=${sign("whsec_x", NOW - 400)}`,
    `t=${NOW}`,
    `t=${NOW},v1=zz`,
    `t=${NOW},t=${NOW},v1=${sign("whsec_x")}`,
    "",
  ]) {
    assert.throws(() => webhooks.verify(BODY, { "X-Webhook-Signature": signature }, "whsec_x"), InvalidSignature);
  }
});
