import { Text } from "@mantine/core";

import { useText } from "../../i18n";
import { Fact, Facts } from "../../parts/Facts";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import type { Execution } from "./api";

/** Why there was an attempt, and the how-manieth it was. */
export function AttemptReason({ attempt }: { attempt: Execution }) {
  const t = useText();
  const { reason, executionSource } = attempt;
  return (
    <>
      {reason
        ? (t.history.reasons[reason] ?? reason)
        : (t.history.origins[executionSource] ?? executionSource)}
      {attempt.attempt !== null && attempt.attempt > 1 && (
        <Text span size="xs" c="dimmed">
          {" "}
          · {t.shards.attempt(attempt.attempt)}
        </Text>
      )}
    </>
  );
}

/** Why it failed, in few words. */
export function AttemptCause({ attempt }: { attempt: Execution }) {
  if (!attempt.failureCause) return null;
  return (
    <Text size="xs" c="var(--bad)" lineClamp={1} maw={360} className="wrap">
      {attempt.failureCause.trim().split("\n", 1)[0]}
    </Text>
  );
}

/** Everything else that is known of it. */
export function AttemptDetail({ attempt }: { attempt: Execution }) {
  const t = useText();
  return (
    <>
      {attempt.failureCause && (
        <Text
          component="pre"
          m={0}
          mb="xs"
          size="xs"
          c="var(--bad)"
          className="mono cause"
          tabIndex={0}
        >
          {attempt.failureCause}
        </Text>
      )}
      <Facts>
        <Fact word={t.runs.started}>
          <When at={attempt.startTime} />
        </Fact>
        <Fact word={t.history.ended}>
          <When at={attempt.completeTime} />
        </Fact>
        <Fact word={t.runs.late}>
          {attempt.latenessMs !== null && duration(attempt.latenessMs)}
        </Fact>
        <Fact word={t.instances.name}>{attempt.instance}</Fact>
        <Fact word={t.history.hostname}>{attempt.hostname}</Fact>
        <Fact word={t.history.token}>{attempt.token}</Fact>
        <Fact word={t.history.runId}>{attempt.runId}</Fact>
        <Fact word={t.history.taskId}>{attempt.taskId}</Fact>
        <Fact word={t.history.traceId}>{attempt.traceId}</Fact>
      </Facts>
    </>
  );
}
