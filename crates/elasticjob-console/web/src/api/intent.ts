/** What is asked for again after so long is asked for anew. */
const SAME = 10 * 60_000;

/** Something nobody else comes up with. There is `crypto.randomUUID` too, but not over plain http. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Keys by which the server knows that the same is meant: pressed twice, or sent again because nobody knows whether it
 * arrived, it is done once. Once it is done, the same words are another wish; and so are other words.
 */
export class Intent {
  private meant: { said: string; key: string; since: number } | null = null;

  keyOf(asked: unknown, now = Date.now()): string {
    const said = JSON.stringify(asked);
    if (this.meant?.said !== said || now - this.meant.since > SAME) {
      this.meant = { said, key: freshKey(), since: now };
    }
    return this.meant.key;
  }

  done() {
    this.meant = null;
  }
}
