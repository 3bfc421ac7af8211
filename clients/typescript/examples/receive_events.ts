/** Registers a webhook endpoint, has a test event sent, and prints it. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

import { InvalidSignature, Switchboard, webhooks } from "../src/index.js";

const { API_KEY = "", BASE_URL = "" } = process.env;
const client = new Switchboard({ apiKey: API_KEY, baseUrl: BASE_URL });

const server = createServer(async (request, response) => {
  try {
    const event = webhooks.verify(await buffer(request), request.headers, endpoint.secret);
    console.log(JSON.stringify(event));
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof InvalidSignature ? 400 : 500).end();
  }
  server.close();
});
await once(server.listen(0, "127.0.0.1"), "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const endpoint = await client.webhookEndpoints.create({ url });
await client.webhookEndpoints.sendTestEvent(endpoint.id);
