/** An identical request gets a new key after this time (ms). */
const MAX_AGE = 10 * 60_000;

/** A random key. `crypto.randomUUID` is not available over plain HTTP. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The idempotency key of a request. A request that is sent twice, or again because the first response was lost, has the
 * same key, so the server executes it once. After success, or with another body, the next request gets a new key.
 */
export class IdempotencyKey {
  private pending: { body: string; key: string; since: number } | null = null;

  keyFor(request: unknown, now = Date.now()): string {
    const body = JSON.stringify(request);
    if (this.pending?.body !== body || now - this.pending.since > MAX_AGE) {
      this.pending = { body, key: randomKey(), since: now };
    }
    return this.pending.key;
  }

  clear() {
    this.pending = null;
  }
}
