/** Words by what they stand for, where the server may know more of them than the pages. */
export type Texts = Record<string, string>;

/** So many of something. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
