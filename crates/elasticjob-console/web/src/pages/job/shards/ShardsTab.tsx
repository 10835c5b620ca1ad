import { Grid, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";

import { useMatrix } from "../../../api/history";
import { SHARDS_PER_PAGE, useShards } from "../../../api/queries";
import type { JobDetails, Shard } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { Card } from "../../../components/Card";
import { Pager } from "../../../components/Pager";
import { ErrorState, Loading } from "../../../components/states";
import { useText } from "../../../i18n";
import { TriggersCard } from "../triggers/TriggersCard";
import { DurationsChart } from "./DurationsChart";
import { FiguresCard } from "./FiguresCard";
import { JobSettings } from "./JobSettings";
import { fromHistory, MAX_RUNS, mergeRuns, useObservedRuns } from "./matrixRuns";
import { RunMatrix } from "./RunMatrix";
import { ShardMap } from "./ShardMap";
import { ShardTable } from "./ShardTable";
import { UpcomingFires } from "./UpcomingFires";

export function ShardsTab({ job }: { job: JobDetails }) {
  const t = useText();
  const registry = useRegistry();
  const [page, setPage] = useState(1);
  const shards = useShards(registry, job.jobName, page);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Stack gap="md">
          <TriggersCard job={job} />
          {shards.isPending ? (
            <Card>
              <Loading />
            </Card>
          ) : shards.isError && !shards.data ? (
            <Card>
              <ErrorState error={shards.error} onRetry={() => void shards.refetch()} />
            </Card>
          ) : (
            <>
              <Card title={t.shards.assignment}>
                <ShardMap job={job} shards={shards.data.items} />
              </Card>
              <RunMatrixCard job={job} shards={shards.data.items} />
              <DurationsChart job={job.jobName} />
              <Card title={t.shards.title} isFlush>
                <ShardTable job={job} shards={shards.data.items} />
                {shards.data.total > SHARDS_PER_PAGE && (
                  <Pager
                    page={page}
                    pageSize={SHARDS_PER_PAGE}
                    total={shards.data.total}
                    onPage={setPage}
                  />
                )}
              </Card>
            </>
          )}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="md">
          <FiguresCard job={job.jobName} />
          <Card title={t.fires.title}>
            <UpcomingFires job={job} />
          </Card>
          <Card title={t.settings.title}>
            <JobSettings job={job} />
          </Card>
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

/** Recorded and observed runs. Java instances record no runs in the registry; without any run the card is hidden. */
function RunMatrixCard({ job, shards }: { job: JobDetails; shards: Shard[] }) {
  const t = useText();
  const registry = useRegistry();
  const matrix = useMatrix(registry, job.jobName, MAX_RUNS);
  const observed = useObservedRuns(registry, job.jobName, shards);
  const recorded = useMemo(() => fromHistory(matrix.data?.runs ?? []), [matrix.data]);
  const runs = useMemo(() => mergeRuns(recorded, observed), [recorded, observed]);
  if (runs.length === 0) {
    return matrix.isPending ? (
      <Card title={t.runMatrix.title}>
        <Loading rows={2} />
      </Card>
    ) : null;
  }
  const isRecorded = matrix.data !== undefined;
  return (
    <Card
      title={t.runMatrix.title}
      right={
        <Text size="xs" c="dimmed">
          {isRecorded ? t.runMatrix.aboutHistory(runs.length) : t.runMatrix.about}
        </Text>
      }
    >
      <RunMatrix runs={runs} shards={shards} known={job.instanceList} isRecorded={isRecorded} />
    </Card>
  );
}
