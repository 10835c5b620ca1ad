import { Problem } from "./problem";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type Headers = Record<string, string>;

let csrfToken = "";
let sessionExpired: () => void = () => {};

/** Every change carries the token, so that other sites cannot send changes. */
export function setCsrfToken(token: string) {
  csrfToken = token;
}

/** Sets the handler for responses that reject the session. */
export function onSessionExpired(then: () => void) {
  sessionExpired = then;
}

export async function request<T>(
  method: Method,
  path: string,
  body?: unknown,
  headers: Headers = {},
): Promise<T> {
  return (await requestWithEtag<T>(method, path, body, headers)).data;
}

export async function requestWithEtag<T>(
  method: Method,
  path: string,
  body?: unknown,
  headers: Headers = {},
): Promise<{ data: T; etag: string | null }> {
  const response = await send(method, path, body, headers);
  const text = await response.text();
  if (!response.ok) {
    const problem = parseProblem(response, text);
    if (problem.code === "notAuthenticated" && path !== "/login") sessionExpired();
    throw problem;
  }
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  return {
    data: (isJson ? JSON.parse(text) : text) as T,
    etag: response.headers.get("etag"),
  };
}

async function send(method: Method, path: string, body: unknown, headers: Headers) {
  const all: Headers = { Accept: "application/json", ...headers };
  if (method !== "GET") all["X-CSRF-Token"] = csrfToken;
  if (body !== undefined) all["Content-Type"] = "application/json";
  try {
    return await fetch(`/api/v1${path}`, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, "offline", "");
  }
}

function parseProblem(response: Response, text: string): Problem {
  const retryAfter = Number(response.headers.get("retry-after")) || undefined;
  try {
    const body = JSON.parse(text) as {
      code?: string;
      detail?: string;
      title?: string;
      hint?: string;
      field?: string;
    };
    return new Problem(
      response.status,
      body.code ?? "internal",
      body.detail ?? body.title ?? response.statusText,
      body.hint,
      body.field,
      retryAfter,
    );
  } catch {
    return new Problem(response.status, "internal", response.statusText, undefined, undefined);
  }
}

/** Builds a query string from the parameters that have a value. */
export function queryString(
  parameters: Record<string, string | number | boolean | undefined | null>,
): string {
  const entries = Object.entries(parameters).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  if (entries.length === 0) return "";
  return `?${new URLSearchParams(entries.map(([key, value]) => [key, String(value)]))}`;
}

export const encodeSegment = encodeURIComponent;
