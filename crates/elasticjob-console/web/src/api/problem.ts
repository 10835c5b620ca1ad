/** An error response of the server (RFC 9457), or a failure to reach it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint?: string,
    readonly field?: string,
    readonly retryAfter?: number,
  ) {
    super(detail);
  }
}

export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "offline", error instanceof Error ? error.message : String(error));
}
