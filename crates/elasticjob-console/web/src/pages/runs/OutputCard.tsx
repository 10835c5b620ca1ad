import { Box, Button, CopyButton, Group, Select, Text } from "@mantine/core";
import { memo, type UIEvent, useLayoutEffect, useRef, useState } from "react";
import { useSearchParams } from "react-router";

import { useRegistry } from "../../app/registry";
import { useLocale, useText } from "../../i18n";
import { Badge, type Tone } from "../../parts/Badge";
import { Card } from "../../parts/Card";
import { Icon } from "../../parts/Icon";
import { Loading } from "../../parts/states";
import { clock } from "../../parts/time";
import classes from "./OutputCard.module.css";
import { type Line, type Listening, plain, useOutput } from "./output";

const TONES: Record<Listening, Tone> = {
  connecting: "off",
  live: "busy",
  lost: "warn",
  ended: "off",
};
/** So near to the end counts as the end. */
const NEAR = 24;

/** What a run says, while it says it. */
export function OutputCard({ runId, shards }: { runId: string; shards: number[] }) {
  const t = useText();
  const [params, setParams] = useSearchParams();
  const shard = params.get("shard") ?? "";
  const { lines, left, listening } = useOutput(useRegistry(), runId, shard);
  const box = useRef<HTMLElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: more lines make the box higher, and its end is followed.
  useLayoutEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, isFollowing]);
  const scrolled = (event: UIEvent<HTMLElement>) => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    setFollowing(scrollHeight - scrollTop - clientHeight < NEAR);
  };
  return (
    <Card
      title={t.runs.output}
      right={
        <Group gap="xs">
          <span aria-live="polite" data-listening={listening}>
            <Badge tone={TONES[listening]} isAlive={listening === "live"}>
              {t.history.listening[listening]}
            </Badge>
          </span>
          {lines.length > 0 && (
            <CopyButton value={lines.map((line) => plain(line.text)).join("\n")}>
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
        listening === "connecting" ? (
          <Loading rows={3} />
        ) : (
          <Text size="sm" c="dimmed">
            {listening === "ended" ? t.runs.silent : t.history.waiting}
          </Text>
        )
      ) : (
        <Box pos="relative">
          <section
            ref={box}
            className={classes.lines}
            aria-label={t.runs.output}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by those who scroll with the keyboard.
            tabIndex={0}
            onScroll={scrolled}
          >
            {left > 0 && (
              <Text size="xs" c="dimmed" px="xs">
                {t.history.leftOut(left)}
              </Text>
            )}
            {lines.map((line, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines are only added at the end; with those left out the index is the number of the line.
              <OneLine key={left + index} line={line} isOfAll={shard === ""} />
            ))}
          </section>
          {!isFollowing && (
            <Button
              className={classes.toEnd}
              size="compact-sm"
              leftSection={<Icon name="down" />}
              onClick={() => setFollowing(true)}
            >
              {t.history.follow}
            </Button>
          )}
        </Box>
      )}
    </Card>
  );
}

const OneLine = memo(function OneLine({ line, isOfAll }: { line: Line; isOfAll: boolean }) {
  const locale = useLocale();
  return (
    <div className={classes.line} data-stream={line.stream.toLowerCase()}>
      <span className={classes.at}>{line.at ? clock(line.at, locale) : ""}</span>
      {isOfAll && <span className={classes.item}>{line.shardingItem}</span>}
      <span className={classes.text}>{plain(line.text)}</span>
    </div>
  );
});
