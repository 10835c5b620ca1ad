/** Texts by a code of the server, which may know more codes than the pages. */
export type Texts = Record<string, string>;

/** A count with its noun: `1 job`, `2 jobs`. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
