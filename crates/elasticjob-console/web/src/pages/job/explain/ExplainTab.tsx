import { Group, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useExplain } from "../../../api/queries";
import type { Finding, Instance, JobDetails } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { Card } from "../../../components/Card";
import { Icon, type IconName } from "../../../components/Icon";
import { MessageText } from "../../../components/MessageText";
import { ServerMessage } from "../../../components/ServerMessage";
import { ErrorState, Loading } from "../../../components/states";
import { useText } from "../../../i18n";
import classes from "./ExplainTab.module.css";

/** Explains why a job runs or does not run; the most severe findings come first. */
export function ExplainTab({ job }: { job: JobDetails }) {
  const t = useText();
  const registry = useRegistry();
  const [shard, setShard] = useState<number | undefined>();
  const [local, setLocal] = useState("");
  const at = local ? new Date(local).toISOString() : undefined;
  const explanation = useExplain(registry, job.jobName, shard, at);
  const findings = explanation.data?.findings ?? [];
  const worst = findings.some((each) => each.severity === "blocking")
    ? "blocking"
    : findings.some((each) => each.severity === "warning")
      ? "warning"
      : "info";
  return (
    <Stack gap="md">
      <Group align="flex-end" gap="sm">
        <NumberInput
          label={t.explain.shard}
          placeholder={t.explain.all}
          min={0}
          max={Math.max(0, (job.shardingTotalCount ?? 1) - 1)}
          w={130}
          value={shard ?? ""}
          onChange={(value) => setShard(value === "" ? undefined : Number(value))}
        />
        <TextInput
          type="datetime-local"
          step={1}
          label={t.explain.at}
          value={local}
          onChange={(event) => setLocal(event.currentTarget.value)}
        />
      </Group>
      {explanation.isPending && <Loading />}
      {explanation.isError && !explanation.data && <ErrorState error={explanation.error} />}
      {explanation.data && (
        <Card title={t.explain.summaries[worst]} isFlush>
          <ul className={classes.findings} aria-live="polite">
            {(["blocking", "warning", "info"] as const).flatMap((severity) =>
              findings
                .filter((each) => each.severity === severity)
                .map((each, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: findings have no id and may repeat, and a row keeps no state.
                  <FindingRow key={`${severity}${index}`} finding={each} known={job.instanceList} />
                )),
            )}
          </ul>
        </Card>
      )}
    </Stack>
  );
}

const ICONS: Record<Finding["severity"], IconName> = {
  blocking: "block",
  warning: "alert",
  info: "info",
};

function FindingRow({ finding, known }: { finding: Finding; known: Instance[] }) {
  const t = useText();
  return (
    <li className={classes.finding} data-severity={finding.severity}>
      <span className={classes.icon}>
        <Icon name={ICONS[finding.severity]} />
      </span>
      <div>
        <Text size="xs" c="dimmed">
          {t.explain.severities[finding.severity]} ·{" "}
          {t.explain.topics[finding.topic] ?? finding.topic}
          {finding.shard !== null && ` · ${t.explain.ofShard(finding.shard)}`}
        </Text>
        <ServerMessage
          text={t.explain.describe(finding.topic, finding.message)}
          message={finding.message}
          known={known}
        />
        {finding.hint && (
          <Text size="sm" c="dimmed" className="wrap" component="div" lang="en">
            <MessageText text={finding.hint} />
          </Text>
        )}
      </div>
    </li>
  );
}
