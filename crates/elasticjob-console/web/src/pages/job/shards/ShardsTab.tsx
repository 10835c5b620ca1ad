import { Grid, Stack, Text } from "@mantine/core";
import { useMemo } from "react";

import { useMatrix } from "../../../api/history";
import { useShards } from "../../../api/queries";
import type { JobDetails, Shard } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { useText } from "../../../i18n";
import { Card } from "../../../parts/Card";
import { Failure, Loading } from "../../../parts/states";
import { Durations } from "./Durations";
import { Facts } from "./Facts";
import { FiguresCard } from "./FiguresCard";
import { Fires } from "./Fires";
import { RoundMatrix } from "./RoundMatrix";
import { MOST, merged, recorded, useRounds } from "./rounds";
import { ShardMap } from "./ShardMap";
import { ShardTable } from "./ShardTable";

export function ShardsTab({ job }: { job: JobDetails }) {
  const t = useText();
  const registry = useRegistry();
  const shards = useShards(registry, job.jobName);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Stack gap="md">
          {shards.isPending ? (
            <Card>
              <Loading />
            </Card>
          ) : shards.isError && !shards.data ? (
            <Card>
              <Failure error={shards.error} again={() => void shards.refetch()} />
            </Card>
          ) : (
            <>
              <Card title={t.shards.map}>
                <ShardMap job={job} shards={shards.data} />
              </Card>
              <Rounds job={job} shards={shards.data} />
              <Durations job={job.jobName} />
              <Card title={t.shards.title} isFlush>
                <ShardTable job={job} shards={shards.data} />
              </Card>
            </>
          )}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="md">
          <FiguresCard job={job.jobName} />
          <Card title={t.fires.title}>
            <Fires job={job} />
          </Card>
          <Card title={t.facts.title}>
            <Facts job={job} />
          </Card>
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

/** What history has, and what goes on. Java tells the registry nothing of its runs: where nothing can be seen, nothing is shown. */
function Rounds({ job, shards }: { job: JobDetails; shards: Shard[] }) {
  const t = useText();
  const registry = useRegistry();
  const matrix = useMatrix(registry, job.jobName, MOST);
  const seen = useRounds(registry, job.jobName, shards);
  const past = useMemo(() => recorded(matrix.data?.rounds ?? []), [matrix.data]);
  const rounds = useMemo(() => merged(past, seen), [past, seen]);
  if (rounds.length === 0) {
    return matrix.isPending ? (
      <Card title={t.rounds.title}>
        <Loading rows={2} />
      </Card>
    ) : null;
  }
  const isRecorded = matrix.data !== undefined;
  return (
    <Card
      title={t.rounds.title}
      right={
        <Text size="xs" c="dimmed">
          {isRecorded ? t.rounds.aboutPast(rounds.length) : t.rounds.about}
        </Text>
      }
    >
      <RoundMatrix
        rounds={rounds}
        shards={shards}
        known={job.instanceList}
        isRecorded={isRecorded}
      />
    </Card>
  );
}
