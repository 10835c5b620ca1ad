import { Button, Group, Text, Tooltip } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import type { Execution, Instance } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/DataTable";
import { InstanceName } from "../../components/InstanceName";
import { useNow } from "../../components/now";
import { EmptyState } from "../../components/states";
import { formatDuration, shortTime } from "../../components/time";
import { useText } from "../../i18n";
import { AttemptCause, AttemptDetail, AttemptReason } from "./Attempt";
import { RunBadge, STATE_TONES } from "./RunBadge";
import classes from "./TimelineCard.module.css";
import { type Bar, INITIAL_LIMIT, toTimeline } from "./timeline";

/** Every attempt of every shard: instance, reason, duration and outcome. */
export function TimelineCard({ attempts, known }: { attempts: Execution[]; known?: Instance[] }) {
  const t = useText();
  const now = useNow();
  const [limit, setLimit] = useState(INITIAL_LIMIT);
  const { bars, from, lengthMs, omitted } = toTimeline(attempts, now, limit);
  return (
    <Card
      title={t.history.timeline}
      isFlush
      right={
        from !== null && (
          <Text size="xs" c="dimmed" className="numeric">
            {t.history.timelineScale(shortTime(from, now), formatDuration(lengthMs))}
          </Text>
        )
      }
    >
      {bars.length === 0 ? (
        <EmptyState icon="clock" title={t.history.noAttempts}>
          {t.history.noAttemptsAbout}
        </EmptyState>
      ) : (
        <DataTable
          label={t.history.timeline}
          width={820}
          rows={bars}
          keyOf={({ attempt }) => attempt.id}
          attributes={({ attempt }) => ({ "data-attempt": attempt.shardingItem })}
          detail={({ attempt }) => <AttemptDetail attempt={attempt} />}
          columns={[
            {
              header: t.shards.item,
              width: 76,
              className: "numeric",
              cell: ({ attempt: { shardingItem } }) => (
                <Tooltip label={t.history.onlyShard(shardingItem)}>
                  <Link
                    className="name"
                    to={`?shard=${shardingItem}`}
                    replace
                    preventScrollReset
                    aria-label={t.history.onlyShard(shardingItem)}
                  >
                    {shardingItem}
                  </Link>
                </Tooltip>
              ),
            },
            {
              header: t.runs.state,
              width: 120,
              cell: ({ attempt }) => <RunBadge state={attempt.state} />,
            },
            {
              header: t.history.reason,
              width: 150,
              cell: ({ attempt }) => <AttemptReason attempt={attempt} />,
            },
            {
              header: t.shards.owner,
              cell: ({ attempt }) => (
                <>
                  {attempt.instance ? (
                    <InstanceName id={attempt.instance} known={known} />
                  ) : (
                    attempt.ip || "–"
                  )}
                  {attempt.token !== null && (
                    <Text size="xs" c="dimmed" className="numeric">
                      {t.history.token} {attempt.token}
                    </Text>
                  )}
                </>
              ),
            },
            {
              header: t.history.timelineColumn,
              isWide: true,
              width: 320,
              cell: (bar) => <TimelineBar bar={bar} known={known} />,
            },
            {
              header: t.runs.duration,
              width: 96,
              className: "numeric",
              cell: ({ tookMs }) => (tookMs === null ? "–" : formatDuration(tookMs)),
            },
          ]}
        />
      )}
      {omitted > 0 && (
        <Group justify="center" p="sm">
          <Button variant="default" size="compact-sm" onClick={() => setLimit(Infinity)}>
            {t.history.moreAttempts(omitted)}
          </Button>
        </Group>
      )}
    </Card>
  );
}

function TimelineBar({ bar, known }: { bar: Bar; known?: Instance[] }) {
  const t = useText();
  const now = useNow();
  const { attempt } = bar;
  const state = attempt.state;
  const name = known?.find((each) => each.instanceId === attempt.instance)?.labels?.name;
  const label = [
    attempt.startTime && shortTime(attempt.startTime, now),
    t.runs.states[state] ?? state,
    bar.tookMs !== null && formatDuration(bar.tookMs),
    name ?? attempt.instance,
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <>
      <Tooltip label={label} openDelay={0}>
        <div className={classes.track} role="img" aria-label={label}>
          <span
            className={classes.bar}
            data-tone={STATE_TONES[state]}
            data-alive={state === "running" || undefined}
            style={{ left: `${Math.min(99, bar.left)}%`, width: `${bar.width}%` }}
          />
        </div>
      </Tooltip>
      <AttemptCause attempt={attempt} />
    </>
  );
}
