/** From cold to hot, by the share of the hottest; what is not zero is never cold. */
export function levels(counts: number[]): number[] {
  const most = Math.max(1, ...counts);
  return counts.map((count) =>
    count === 0 ? 0 : Math.min(4, 1 + Math.floor((3.999 * count) / most)),
  );
}

/** Which cells have a label below them. */
export const labelled = (count: number): number[] =>
  Array.from({ length: 6 }, (_, index) => Math.round((index * count) / 6));
