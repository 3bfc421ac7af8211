/** Requests to the server, repeated where that helps. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { ConnectionFailed, InvalidResponse, createError, parseProblem } from "./errors.js";
import { Page, type PageContent } from "./pages.js";
import { findDelay } from "./retries.js";

/** Options of each method. A POST without an `idempotencyKey` gets one, the same for all attempts. */
export interface RequestOptions {
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** A request: `path` with the names of `ids` in braces. */
export interface ApiRequest {
  method: string;
  path: string;
  ids: Record<string, string>;
  query?: object;
  body?: object;
  options: RequestOptions;
}

/** Options of the client. `baseUrl`: address of the server, without `/v1`. `timeout`: milliseconds for each attempt. */
export interface ClientOptions {
  apiKey: string;
  baseUrl: string;
  timeout?: number;
  maxRetries?: number;
}

const DEFAULT_TIMEOUT = 60_000;
const DEFAULT_RETRIES = 3;

export class Transport {
  constructor(private readonly options: ClientOptions) {}

  async fetchJson<T>(request: ApiRequest): Promise<T> {
    return this.send(request, async (response) => (await response.json()) as T);
  }

  async fetchPage<T>(request: ApiRequest): Promise<Page<T>> {
    const content = await this.fetchJson<PageContent<T>>(request);
    return new Page(content, (offset) => this.fetchPage({ ...request, query: { ...request.query, offset } }));
  }

  async fetchBytes(request: ApiRequest): Promise<ArrayBuffer> {
    return this.send(request, (response) => response.arrayBuffer());
  }

  async fetchNothing(request: ApiRequest): Promise<void> {
    await this.send(request, (response) => response.arrayBuffer());
  }

  /** Return what `read` makes of a successful response; throws `ApiError` or `ConnectionFailed`. */
  private async send<T>(request: ApiRequest, read: (response: Response) => Promise<T>): Promise<T> {
    const url = this.buildUrl(request);
    const headers = this.buildHeaders(request);
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.attempt(url, headers, request, read);
      if ("value" in outcome) {
        return outcome.value;
      }
      const { error, response, problem } = outcome;
      const delay = findDelay(attempt, this.options.maxRetries ?? DEFAULT_RETRIES, response, problem);
      if (delay === undefined) {
        throw error;
      }
      await sleep(delay, undefined, request.options);
    }
  }

  private async attempt<T>(
    url: URL,
    headers: Record<string, string>,
    request: ApiRequest,
    read: (response: Response) => Promise<T>,
  ) {
    const { signal } = request.options;
    const controller = new AbortController();
    const abort = () => controller.abort();
    const timer = setTimeout(abort, this.options.timeout ?? DEFAULT_TIMEOUT);
    try {
      signal?.throwIfAborted();
      signal?.addEventListener("abort", abort);
      const body = request.body === undefined ? null : JSON.stringify(request.body);
      const response = await fetch(url, { method: request.method, headers, body, signal: controller.signal });
      if (response.ok) {
        return { value: await read(response) };
      }
      const problem = await parseProblem(response);
      return { error: createError(response, problem), response, problem };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SyntaxError) {
        throw new InvalidResponse("The response is not JSON.", { cause: error });
      }
      return { error: new ConnectionFailed(`No response from ${url.host}.`, { cause: error }) };
    } finally {
      signal?.removeEventListener("abort", abort);
      clearTimeout(timer);
    }
  }

  private buildUrl({ path, ids, query = {} }: ApiRequest): URL {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? ""));
    const url = new URL(this.options.baseUrl.replace(/\/$/, "") + filled);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) {
        url.searchParams.set(name, String(value));
      }
    }
    return url;
  }

  private buildHeaders({ method, body, options }: ApiRequest): Record<string, string> {
    return {
      Authorization: `Bearer ${this.options.apiKey}`,
      Accept: "application/json",
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(method === "POST" && { "Idempotency-Key": options.idempotencyKey ?? randomUUID() }),
    };
  }
}
