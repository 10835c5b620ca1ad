import { Text } from "@mantine/core";

import type { Execution } from "../../api/types";
import { DescriptionItem, DescriptionList } from "../../components/DescriptionList";
import { Timestamp } from "../../components/Timestamp";
import { formatDuration } from "../../components/time";
import { useText } from "../../i18n";

/** Reason and number of an attempt. */
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

/** A cancelled attempt did not fail: someone asked for its end. */
const causeColour = ({ state }: Execution) => (state === "cancelled" ? "dimmed" : "var(--bad)");

/** First line of the failure cause. */
export function AttemptCause({ attempt }: { attempt: Execution }) {
  if (!attempt.failureCause) return null;
  return (
    <Text size="xs" c={causeColour(attempt)} lineClamp={1} maw={360} className="wrap">
      {attempt.failureCause.trim().split("\n", 1)[0]}
    </Text>
  );
}

/** Failure cause and details of an attempt. */
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
          c={causeColour(attempt)}
          className="mono cause"
          tabIndex={0}
        >
          {attempt.failureCause}
        </Text>
      )}
      <DescriptionList>
        <DescriptionItem term={t.runs.started}>
          <Timestamp at={attempt.startTime} />
        </DescriptionItem>
        <DescriptionItem term={t.history.ended}>
          <Timestamp at={attempt.completeTime} />
        </DescriptionItem>
        <DescriptionItem term={t.runs.startDelay}>
          {attempt.latenessMs !== null && formatDuration(attempt.latenessMs)}
        </DescriptionItem>
        <DescriptionItem term={t.instances.name}>{attempt.instance}</DescriptionItem>
        <DescriptionItem term={t.history.hostname}>{attempt.hostname}</DescriptionItem>
        <DescriptionItem term={t.history.token}>{attempt.token}</DescriptionItem>
        <DescriptionItem term={t.history.runId}>{attempt.runId}</DescriptionItem>
        <DescriptionItem term={t.history.taskId}>{attempt.taskId}</DescriptionItem>
        <DescriptionItem term={t.history.traceId}>{attempt.traceId}</DescriptionItem>
      </DescriptionList>
    </>
  );
}
