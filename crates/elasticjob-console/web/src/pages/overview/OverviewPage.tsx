import { Alert, Grid, Stack, Text } from "@mantine/core";

import { useOverview } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Icon } from "../../parts/Icon";
import { PageHead } from "../../parts/PageHead";
import { Failure, Loading } from "../../parts/states";
import { When } from "../../parts/When";
import { Charts } from "./Charts";
import { HeatStrip } from "./HeatStrip";
import { Incidents } from "./Incidents";
import { NextJobs } from "./NextJobs";
import { RANGES, useRange } from "./range";
import { Tiles } from "./Tiles";

export function OverviewPage() {
  const t = useText();
  const registry = useRegistry();
  const [range, setRange] = useRange();
  const overview = useOverview(registry, RANGES[range].hours);
  const seen = overview.data;
  return (
    <>
      <PageHead
        title={t.nav.overview}
        about={
          seen &&
          (seen.isCurrent ? (
            t.overview.live
          ) : (
            <Text span c="var(--warn)" size="sm">
              {t.overview.asOf} <When at={seen.asOf} />
            </Text>
          ))
        }
      />
      {overview.isPending ? (
        <Loading rows={8} />
      ) : !seen ? (
        <Failure error={overview.error} again={() => void overview.refetch()} />
      ) : (
        <Stack gap="md">
          <Tiles seen={seen} range={range} />
          {seen.historyProblem && (
            <Alert color="yellow" variant="light" icon={<Icon name="alert" />}>
              {t.overview.historyDown} {seen.historyProblem}
            </Alert>
          )}
          <Charts range={range} onRange={setRange} lateAfterMs={seen.lastHours?.lateAfterMs} />
          <Card title={t.overview.heat}>
            <HeatStrip />
          </Card>
          <Grid gap="md">
            <Grid.Col span={{ base: 12, md: 7 }}>
              <Card title={t.overview.incidents} isFlush>
                <Incidents incidents={seen.incidents} total={seen.incidentCount} />
              </Card>
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 5 }}>
              <Card title={t.overview.next} isFlush>
                <NextJobs next={seen.next} />
              </Card>
            </Grid.Col>
          </Grid>
        </Stack>
      )}
    </>
  );
}
