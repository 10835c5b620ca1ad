/** What is asked for again after so long is asked for anew. */
const MAX_AGE = 10 * 60_000;

/** Something nobody else comes up with. There is `crypto.randomUUID` too, but not over plain http. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Keys by which the server knows that the same is meant: pressed twice, or sent again because nobody knows whether it
 * arrived, it is done once. Once it is done, the same words are another wish; and so are other words.
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
