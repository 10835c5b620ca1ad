/** Heat level 0–4 of each count relative to the average of non-zero counts: 0 only for zero, 2 for an even load. */
export function levels(counts: number[]): number[] {
  const nonZero = counts.filter((count) => count > 0);
  const average = nonZero.reduce((sum, count) => sum + count, 0) / Math.max(1, nonZero.length);
  return counts.map((count) => {
    if (count === 0) return 0;
    const share = count / average;
    return share < 0.6 ? 1 : share < 1.3 ? 2 : share < 2 ? 3 : 4;
  });
}

/** Index of the busiest cell, or null if the load is even. */
export function peak(counts: number[]): number | null {
  const most = Math.max(...counts);
  const at = counts.indexOf(most);
  return (levels(counts)[at] ?? 0) >= 3 ? at : null;
}

/** Indexes of the cells with a label. */
export const labelledCells = (count: number): number[] =>
  Array.from({ length: 6 }, (_, index) => Math.round((index * count) / 6));
