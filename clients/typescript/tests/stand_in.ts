/** A server that responds as the test says, and records its requests. */

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

import { Switchboard, type ClientOptions } from "../src/index.js";

/** `status` 0 closes the connection. */
export interface StandInResponse {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface RecordedRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export class StandIn {
  readonly requests: RecordedRequest[] = [];

  private constructor(
    private readonly server: Server,
    private readonly url: string,
  ) {}

  /** Serve the responses in order; the last one is repeated. */
  static async serve(...responses: StandInResponse[]): Promise<StandIn> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const standIn = new StandIn(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on("request", async (request, response) => {
      const { method = "", url = "", headers } = request;
      standIn.requests.push({ method, url, headers, body: await text(request) });
      const next = responses[Math.min(standIn.requests.length, responses.length) - 1];
      if (!next || next.status === 0) {
        request.socket.destroy();
        return;
      }
      const body = typeof next.body === "string" ? next.body : JSON.stringify(next.body ?? {});
      response.writeHead(next.status, { "Content-Type": "application/json", ...next.headers }).end(body);
    });
    return standIn;
  }

  createClient(options: Partial<ClientOptions> = {}): Switchboard {
    return new Switchboard({ apiKey: "svc_live_x", baseUrl: this.url, ...options });
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

export function createProblem(status: number, code: string, headers: Record<string, string> = {}): StandInResponse {
  return { status, headers, body: { status, code, detail: "No.", errors: [{ field: "a", message: "b" }], request_id: "r1" } };
}
