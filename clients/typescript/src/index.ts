export { Switchboard } from "./client.js";
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionFailed,
  InvalidResponse,
  InvalidSignature,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  SwitchboardError,
  ValidationError,
  type FieldError,
} from "./errors.js";
export * from "./generated/resources.js";
export type * from "./generated/types.js";
export { Page } from "./pages.js";
export type { ClientOptions, RequestOptions } from "./transport.js";
export * as webhooks from "./webhooks.js";
