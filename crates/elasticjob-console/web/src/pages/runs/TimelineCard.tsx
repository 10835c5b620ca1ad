import { Button, Group, Text, Tooltip } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import type { Instance } from "../../api/types";
import { useLocale, useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { DataTable } from "../../parts/DataTable";
import { InstanceName } from "../../parts/InstanceName";
import { useNow } from "../../parts/now";
import { Empty } from "../../parts/states";
import { brief, duration } from "../../parts/time";
import { AttemptCause, AttemptDetail, AttemptReason } from "./Attempt";
import { type Execution, stateOf } from "./api";
import { RunBadge, STATE_TONES } from "./RunBadge";
import classes from "./TimelineCard.module.css";
import { type Bar, FEW, timelineOf } from "./timeline";

/** Every attempt of every shard: who had it, why, for how long, and how it ended. */
export function TimelineCard({ attempts, known }: { attempts: Execution[]; known?: Instance[] }) {
  const t = useText();
  const locale = useLocale();
  const now = useNow();
  const [most, setMost] = useState(FEW);
  const { bars, from, lengthMs, left } = timelineOf(attempts, now, most);
  return (
    <Card
      title={t.history.timeline}
      isFlush
      right={
        from !== null && (
          <Text size="xs" c="dimmed" className="numeric">
            {t.history.scale(brief(from, locale, now), duration(lengthMs))}
          </Text>
        )
      }
    >
      {bars.length === 0 ? (
        <Empty icon="clock" title={t.history.noAttempts}>
          {t.history.noAttemptsAbout}
        </Empty>
      ) : (
        <DataTable
          label={t.history.timeline}
          width={820}
          rows={bars}
          keyOf={({ attempt }) => attempt.id}
          marks={({ attempt }) => ({ "data-attempt": attempt.shardingItem })}
          detail={({ attempt }) => <AttemptDetail attempt={attempt} />}
          columns={[
            {
              head: t.shards.item,
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
              head: t.runs.state,
              width: 120,
              cell: ({ attempt }) => <RunBadge state={stateOf(attempt)} />,
            },
            {
              head: t.history.reason,
              width: 150,
              cell: ({ attempt }) => <AttemptReason attempt={attempt} />,
            },
            {
              head: t.shards.owner,
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
              head: t.history.along,
              isWide: true,
              width: 320,
              cell: (bar) => <Along bar={bar} known={known} />,
            },
            {
              head: t.runs.took,
              width: 96,
              className: "numeric",
              cell: ({ tookMs }) => (tookMs === null ? "–" : duration(tookMs)),
            },
          ]}
        />
      )}
      {left > 0 && (
        <Group justify="center" p="sm">
          <Button variant="default" size="compact-sm" onClick={() => setMost(Infinity)}>
            {t.history.moreAttempts(left)}
          </Button>
        </Group>
      )}
    </Card>
  );
}

function Along({ bar, known }: { bar: Bar; known?: Instance[] }) {
  const t = useText();
  const locale = useLocale();
  const now = useNow();
  const { attempt } = bar;
  const state = stateOf(attempt);
  const who = known?.find((each) => each.instanceId === attempt.instance)?.labels?.name;
  const label = [
    attempt.startTime && brief(attempt.startTime, locale, now),
    t.runs.states[state] ?? state,
    bar.tookMs !== null && duration(bar.tookMs),
    who ?? attempt.instance,
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
