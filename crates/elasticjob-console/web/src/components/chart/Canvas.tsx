import "uplot/dist/uPlot.min.css";

import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";

import { type Layer, stacked } from "./layers";
import type { Tick } from "./ticks";

export interface CanvasProps {
  /** From bottom to top. */
  layers: Layer[];
  ticks: Tick[];
  /** Allowed distances between grid lines. */
  steps: number[];
  format: (value: number) => string;
  /** Threshold, drawn as a dashed line. */
  limit?: number;
  height: number;
  onHover: (index: number | null) => void;
  hasLink?: (index: number) => boolean;
  onSelect?: (index: number) => void;
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name);

/** Bars on a canvas. A separate file, so that pages without charts do not load uPlot. */
export default function Canvas(props: CanvasProps) {
  const { layers, ticks, height } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const scheme = useComputedColorScheme();

  // biome-ignore lint/correctness/useExhaustiveDependencies: uPlot creates its series once, one per layer; another number of layers needs a new plot.
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const created = new uPlot(
      options(latest, element.clientWidth, height),
      plotData(latest.current.layers),
      element,
    );
    plot.current = created;
    const watch = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0);
      if (width > 0 && width !== created.width) created.setSize({ width, height });
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      created.destroy();
      plot.current = null;
    };
  }, [height, layers.length]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: ticks and scheme colours are read while drawing, and setting the data redraws.
  useEffect(() => {
    plot.current?.setData(plotData(layers));
  }, [layers, ticks, scheme]);

  return <div ref={host} style={{ height }} />;
}

/** The top layer is drawn first and the lower ones over it. */
const plotData = (layers: Layer[]): uPlot.AlignedData => {
  const length = layers[0]?.values.length ?? 0;
  return [Array.from({ length }, (_, index) => index), ...stacked(layers).reverse()];
};

function options(latest: { current: CanvasProps }, width: number, height: number): uPlot.Options {
  const bars = uPlot.paths.bars?.({ size: [0.78, 40], radius: 0.12 });
  const font = `11px ${css("--mantine-font-family")}`;
  const grid = { stroke: () => css("--line"), width: 1 };
  const count = () => latest.current.layers[0]?.values.length ?? 0;
  return {
    width,
    height,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: () => [-0.5, Math.max(0.5, count() - 0.5)] },
      y: { range: (_, __, most) => [0, Math.max(1, most) * 1.08] },
    },
    axes: [
      {
        font,
        stroke: () => css("--quiet"),
        grid: { show: false },
        ticks: { ...grid, size: 4 },
        gap: 3,
        size: 24,
        splits: () => latest.current.ticks.map((tick) => tick.index),
        values: () => latest.current.ticks.map((tick) => tick.label),
      },
      {
        font,
        stroke: () => css("--quiet"),
        grid,
        ticks: { show: false },
        gap: 4,
        size: (_, values) => {
          const widest = Math.max(0, ...(values ?? []).map((text) => text.length));
          return Math.max(30, 10 + widest * 6.5);
        },
        space: 26,
        incrs: () => latest.current.steps,
        values: (_, splits) => splits.map((value) => latest.current.format(value)),
      },
    ],
    series: [
      {},
      ...[...latest.current.layers].reverse().map(({ tone }) => ({
        paths: bars,
        points: { show: false },
        width: 0,
        fill: () => css(`--chart-${tone}`),
      })),
    ],
    hooks: {
      ready: [
        (self) => {
          self.over.addEventListener("click", () => {
            const index = self.cursor.idx;
            if (typeof index === "number" && latest.current.hasLink?.(index))
              latest.current.onSelect?.(index);
          });
        },
      ],
      setCursor: [
        (self) => {
          const index = (self.cursor.left ?? -1) < 0 ? null : (self.cursor.idx ?? null);
          const leads = index !== null && (latest.current.hasLink?.(index) ?? false);
          self.over.style.cursor = leads ? "pointer" : "default";
          latest.current.onHover(index);
        },
      ],
      draw: [(self) => drawLimit(self, latest.current.limit)],
    },
  };
}

function drawLimit({ ctx, bbox, scales, valToPos }: uPlot, limit: number | undefined) {
  if (limit === undefined || limit > (scales.y?.max ?? 0)) return;
  const y = valToPos(limit, "y", true);
  ctx.save();
  ctx.strokeStyle = css("--chart-late");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
