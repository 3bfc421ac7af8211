/** Places a call, waits for its end, and prints its transcript: `node place_call.js AGENT_ID NUMBER_ID TO_NUMBER`. */

import { setTimeout as sleep } from "node:timers/promises";

import { Switchboard } from "../src/index.js";

const { API_KEY = "", BASE_URL = "" } = process.env;
const [agentId = "", numberId = "", toNumber = ""] = process.argv.slice(2);
const client = new Switchboard({ apiKey: API_KEY, baseUrl: BASE_URL });

let call = await client.calls.create({ agent_id: agentId, from_number_id: numberId, to_number: toNumber });
while (call.ended_at === null) {
  await sleep(1000);
  call = await client.calls.get(call.id);
}
for (const entry of await client.calls.getTranscript(call.id)) {
  console.log(`${entry.role}: ${entry.content}`);
}
