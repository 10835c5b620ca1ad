import { Box, Button, CopyButton, Group, Select, Text } from "@mantine/core";
import { memo, type UIEvent, useLayoutEffect, useRef, useState } from "react";
import { useSearchParams } from "react-router";

import type { OutputLine } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { Badge, type Tone } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Icon } from "../../components/Icon";
import { Loading } from "../../components/states";
import { timeOfDay } from "../../components/time";
import { useText } from "../../i18n";
import classes from "./OutputCard.module.css";
import { type StreamState, stripAnsi, useOutput } from "./output";

const TONES: Record<StreamState, Tone> = {
  connecting: "off",
  live: "busy",
  lost: "warn",
  ended: "off",
};
/** Distance (px) from the end that still counts as the end. */
const END_TOLERANCE = 24;

/** Live output of a run. */
export function OutputCard({ runId, shards }: { runId: string; shards: number[] }) {
  const t = useText();
  const [params, setParams] = useSearchParams();
  const shard = params.get("shard") ?? "";
  const { lines, omitted, streamState } = useOutput(useRegistry(), runId, shard);
  const box = useRef<HTMLElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines make the box higher, and the view follows its end.
  useLayoutEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, isFollowing]);
  const onScroll = (event: UIEvent<HTMLElement>) => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    setFollowing(scrollHeight - scrollTop - clientHeight < END_TOLERANCE);
  };
  return (
    <Card
      title={t.runs.output}
      right={
        <Group gap="xs">
          <span aria-live="polite" data-stream-state={streamState}>
            <Badge tone={TONES[streamState]} isAlive={streamState === "live"}>
              {t.history.streamStates[streamState]}
            </Badge>
          </span>
          {lines.length > 0 && (
            <CopyButton value={lines.map((line) => stripAnsi(line.text)).join("\n")}>
              {({ copied, copy }) => (
                <Button
                  variant="default"
                  size="compact-sm"
                  leftSection={<Icon name="copy" />}
                  onClick={copy}
                >
                  {copied ? t.copied : t.copy}
                </Button>
              )}
            </CopyButton>
          )}
          <Select
            size="xs"
            aria-label={t.shards.item}
            placeholder={t.history.allShards}
            data={shards.map((item) => ({ value: String(item), label: t.explain.ofShard(item) }))}
            value={shard || null}
            onChange={(next) => setParams(next ? { shard: next } : {}, { replace: true })}
            clearable
            clearButtonProps={{ "aria-label": t.config.clear }}
            searchable={shards.length > 10}
            w={150}
          />
        </Group>
      }
    >
      {lines.length === 0 ? (
        streamState === "connecting" ? (
          <Loading rows={3} />
        ) : (
          <Text size="sm" c="dimmed">
            {streamState === "ended" ? t.runs.noOutput : t.history.noOutputYet}
          </Text>
        )
      ) : (
        <Box pos="relative">
          <section
            ref={box}
            className={classes.lines}
            aria-label={t.runs.output}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll area must be reachable by keyboard.
            tabIndex={0}
            onScroll={onScroll}
          >
            {omitted > 0 && (
              <Text size="xs" c="dimmed" px="xs">
                {t.history.omittedLines(omitted)}
              </Text>
            )}
            {lines.map((line, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines are only appended; with the omitted ones the index is the line number.
              <OutputRow key={omitted + index} line={line} hasShard={shard === ""} />
            ))}
          </section>
          {!isFollowing && (
            <Button
              className={classes.toEnd}
              size="compact-sm"
              leftSection={<Icon name="down" />}
              onClick={() => setFollowing(true)}
            >
              {t.history.toEnd}
            </Button>
          )}
        </Box>
      )}
    </Card>
  );
}

const OutputRow = memo(function OutputRow({
  line,
  hasShard,
}: {
  line: OutputLine;
  hasShard: boolean;
}) {
  return (
    <div className={classes.line} data-stream={line.stream.toLowerCase()}>
      <span className={classes.at}>{line.at ? timeOfDay(line.at) : ""}</span>
      {hasShard && <span className={classes.item}>{line.shardingItem}</span>}
      <span className={classes.text}>{stripAnsi(line.text)}</span>
    </div>
  );
});
