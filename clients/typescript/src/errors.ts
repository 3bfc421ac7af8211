/** One error of a request: the field (dotted, such as `contacts.3.phone_number`) and a message. */
export interface FieldError {
  field: string;
  message: string;
}

/** The body of an error (RFC 9457); a proxy's error page has none of the fields. */
export interface Problem {
  detail?: string;
  code?: string;
  errors?: FieldError[];
  request_id?: string;
}

/** Base class of the client's errors. */
export class SwitchboardError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached, or did not respond in time. */
export class ConnectionFailed extends SwitchboardError {}

/** A response that this version cannot read, such as a proxy's page. */
export class InvalidResponse extends SwitchboardError {}

/** A webhook request that the server did not sign with the secret, or that is too old. */
export class InvalidSignature extends SwitchboardError {}

/** An error response. `code` is for programs, such as `insufficient_balance`; quote `requestId` in a bug report. */
export class ApiError extends SwitchboardError {
  readonly code: string;
  readonly detail: string;
  readonly errors: FieldError[];
  readonly requestId: string;

  constructor(
    readonly status: number,
    headers: Headers,
    problem: Problem,
  ) {
    const faults = (problem.errors ?? []).map(({ field, message }) => `${field}: ${message}`).join("; ");
    super([status, problem.code, problem.detail, faults].filter(Boolean).join(" "));
    this.code = problem.code ?? "";
    this.detail = problem.detail ?? "";
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id ?? headers.get("X-Request-Id") ?? "";
  }
}

/** 401: the API key is missing, wrong, or revoked. */
export class AuthenticationError extends ApiError {}
/** 403: the API key lacks a scope, or the organization may not do this. */
export class PermissionDeniedError extends ApiError {}
/** 404: the resource does not exist. */
export class NotFoundError extends ApiError {}
/** 409: the action does not fit the resource's state. */
export class ConflictError extends ApiError {}
/** 422: `errors` names the faulty fields. */
export class ValidationError extends ApiError {}
/** 429: too many requests, also after the retries. */
export class RateLimitError extends ApiError {}
/** 5xx: the server failed, also after the retries. */
export class ServerError extends ApiError {}

const CLASSES: Record<number, typeof ApiError> = {
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  422: ValidationError,
  429: RateLimitError,
};

/** Parse the body of an error; a body that is none has no fields. */
export async function parseProblem(response: Response): Promise<Problem> {
  try {
    return ((await response.json()) ?? {}) as Problem;
  } catch {
    return {};
  }
}

/** Create the error of a response. */
export function createError(response: Response, problem: Problem): ApiError {
  const kind = CLASSES[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
  return new kind(response.status, response.headers, problem);
}
