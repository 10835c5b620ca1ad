import { Anchor, Breadcrumbs, Stack, Table, Text } from "@mantine/core";
import { Link, useParams } from "react-router";

import { useJob } from "../../api/queries";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { InstanceName } from "../../parts/InstanceName";
import { PageHead } from "../../parts/PageHead";
import { Scroll } from "../../parts/Scroll";
import { Failure, Loading } from "../../parts/states";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import { useRun, type Run, type RunItem } from "./api";
import { Output } from "./Output";
import { RunBadge } from "./RunBadge";

export function RunPage() {
  const t = useText();
  const to = useTo();
  const registry = useRegistry();
  const { run: runId = "" } = useParams();
  const run = useRun(registry, runId);
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("runs")} fz="sm">
          {t.nav.runs}
        </Anchor>
        <span className="wrap">{runId}</span>
      </Breadcrumbs>
      {run.isPending ? (
        <Loading />
      ) : !run.data ? (
        <Failure error={run.error} again={() => void run.refetch()} />
      ) : (
        <Found run={run.data} />
      )}
    </>
  );
}

function Found({ run }: { run: Run & { items: RunItem[] } }) {
  const t = useText();
  const to = useTo();
  const job = useJob(useRegistry(), run.jobName);
  return (
    <>
      <PageHead
        title={t.runs.title(run.jobName)}
        badge={<RunBadge state={run.state} />}
        about={
          <>
            <Link className="name" to={to("jobs", run.jobName)}>
              {run.jobName}
            </Link>{" "}
            · {t.runs.sources[run.source] ?? run.source}
            {run.triggeredBy && ` · ${run.triggeredBy}`} · <When at={run.startedAt ?? run.dueAt} />
            {run.durationMs !== null && ` · ${duration(run.durationMs)}`}
          </>
        }
      />
      <Stack gap="md">
        {run.failure && (
          <Card title={t.runs.failure}>
            <Text size="sm" c="var(--bad)" className="mono wrap">
              {run.failure}
            </Text>
          </Card>
        )}
        <Card title={t.shards.title} isFlush>
          <Scroll label={t.shards.title}>
            <Table miw={560}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t.shards.item}</Table.Th>
                  <Table.Th>{t.runs.state}</Table.Th>
                  <Table.Th>{t.runs.attempts}</Table.Th>
                  <Table.Th>{t.shards.owner}</Table.Th>
                  <Table.Th>{t.runs.started}</Table.Th>
                  <Table.Th>{t.runs.took}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {run.items.map((item) => (
                  <Table.Tr key={item.item}>
                    <Table.Td className="numeric">{item.item}</Table.Td>
                    <Table.Td>
                      <RunBadge state={item.state} />
                      {item.reason && (
                        <Text size="xs" c="dimmed">
                          {item.reason}
                        </Text>
                      )}
                    </Table.Td>
                    <Table.Td className="numeric">{item.attempts}</Table.Td>
                    <Table.Td>
                      {item.instance ? (
                        <InstanceName id={item.instance} known={job.data?.instanceList} />
                      ) : (
                        "–"
                      )}
                    </Table.Td>
                    <Table.Td>
                      <When at={item.startedAt} />
                    </Table.Td>
                    <Table.Td className="numeric">
                      {item.durationMs === null ? "–" : duration(item.durationMs)}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Scroll>
        </Card>
        <Card title={t.runs.output}>
          <Output runId={run.runId} isRunning={run.state === "running"} />
        </Card>
      </Stack>
    </>
  );
}
