import { Alert, Grid, Stack, Text } from "@mantine/core";

import { useOverview } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { Card } from "../../components/Card";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { ErrorState, Loading } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";
import { Charts } from "./Charts";
import { ForecastStrip } from "./ForecastStrip";
import { Incidents } from "./Incidents";
import { RANGES, useRange } from "./range";
import { Tiles } from "./Tiles";
import { UpcomingJobs } from "./UpcomingJobs";

export function OverviewPage() {
  const t = useText();
  const registry = useRegistry();
  const [range, setRange] = useRange();
  const overview = useOverview(registry, RANGES[range].hours);
  const data = overview.data;
  return (
    <>
      <PageHeader
        title={t.nav.overview}
        about={
          data &&
          (data.isCurrent ? (
            t.overview.isLive
          ) : (
            <Text span c="var(--warn)" size="sm">
              {t.overview.asOf} <Timestamp at={data.asOf} />
            </Text>
          ))
        }
      />
      {overview.isPending ? (
        <Loading rows={8} />
      ) : !data ? (
        <ErrorState error={overview.error} onRetry={() => void overview.refetch()} />
      ) : (
        <Stack gap="md">
          <Tiles overview={data} range={range} />
          {data.historyProblem && (
            <Alert color="yellow" variant="light" icon={<Icon name="alert" />}>
              {t.overview.historyDown} {data.historyProblem}
            </Alert>
          )}
          <Charts range={range} onRange={setRange} lateAfterMs={data.lastHours?.lateAfterMs} />
          <Card title={t.overview.forecast}>
            <ForecastStrip />
          </Card>
          <Grid gap="md">
            <Grid.Col span={{ base: 12, md: 7 }}>
              <Card title={t.overview.incidents} isFlush>
                <Incidents
                  incidents={data.incidents}
                  total={data.incidentCount}
                  hasHistory={data.lastHours !== null || data.historyProblem !== null}
                />
              </Card>
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 5 }}>
              <Card title={t.overview.next} isFlush>
                <UpcomingJobs next={data.next} />
              </Card>
            </Grid.Col>
          </Grid>
        </Stack>
      )}
    </>
  );
}
