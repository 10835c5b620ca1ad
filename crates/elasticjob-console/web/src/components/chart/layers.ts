import type { ChartTone } from "./tones";

/** One layer of a stacked bar chart. */
export interface Layer {
  label: string;
  tone: ChartTone;
  values: number[];
}

/** Upper edge of each layer: its own value plus those of the layers below. */
export function stacked(layers: Layer[]): number[][] {
  let below: number[] = [];
  return layers.map(({ values }) => {
    below = values.map((value, index) => value + (below[index] ?? 0));
    return below;
  });
}

export const total = (layers: Layer[], index: number): number =>
  layers.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0);

/** Round axis steps for counts and for durations. */
export const COUNT_STEPS = [1, 2, 5]
  .flatMap((each) => Array.from({ length: 9 }, (_, power) => each * 10 ** power))
  .sort((a, b) => a - b);

export const DURATION_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
  300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];
