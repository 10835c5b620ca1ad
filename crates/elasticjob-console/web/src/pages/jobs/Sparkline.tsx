import "../../components/chart/chart.css";

import { Text } from "@mantine/core";
import { memo } from "react";
import { Link } from "react-router";

import type { JobFigures } from "../../api/types";
import { useRegistryLink } from "../../app/registry";
import type { Tone } from "../../components/Badge";
import { LazyTooltip } from "../../components/LazyTooltip";
import { useText } from "../../i18n";
import classes from "./Sparkline.module.css";
import { bars, countByState, HEIGHT, percent, TOTAL_WIDTH } from "./sparklineBars";

/** Recent runs and the success rate of a week, linked to the runs. Re-rendered only when a run changes. */
export const Sparkline = memo(function Sparkline({ of }: { of: JobFigures | undefined }) {
  const t = useText();
  const to = useRegistryLink();
  if (!of) return null;
  if (of.lastRuns.length === 0) {
    return (
      <Text size="xs" c="dimmed">
        {t.jobs.neverRan}
      </Text>
    );
  }
  const counts = countByState(of.lastRuns);
  const permille = of.figures?.successPermille ?? null;
  const summary = t.jobs.lastRunsSummary(of.lastRuns.length, counts);
  const rate = permille === null ? null : percent(permille);
  return (
    <LazyTooltip
      label={() => (
        <>
          <div>{summary}</div>
          {rate && <div>{t.jobs.successRate(rate)}</div>}
        </>
      )}
    >
      <Link
        to={`${to("runs")}?${new URLSearchParams({ job: of.jobName })}`}
        className={classes.spark}
        aria-label={`${summary} ${rate ? t.jobs.successRate(rate) : ""}`}
        data-spark
      >
        <svg className={classes.bars} width={TOTAL_WIDTH} height={HEIGHT} aria-hidden="true">
          {bars(of.lastRuns).map((bar) => (
            <path key={bar.runId} d={bar.path} data-state={bar.state} />
          ))}
        </svg>
        {rate && (
          <span className={classes.rate} data-tone={toneOf(permille ?? 0)}>
            {rate}
          </span>
        )}
      </Link>
    </LazyTooltip>
  );
});

function toneOf(permille: number): Tone {
  if (permille >= 990) return "ok";
  return permille >= 900 ? "warn" : "bad";
}
