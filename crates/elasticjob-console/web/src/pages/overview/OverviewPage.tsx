import { Grid, Stack, Text } from "@mantine/core";

import { useOverview } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { PageHead } from "../../parts/PageHead";
import { Failure, Loading } from "../../parts/states";
import { When } from "../../parts/When";
import { HeatStrip } from "./HeatStrip";
import { Incidents } from "./Incidents";
import { NextJobs } from "./NextJobs";
import { Tiles } from "./Tiles";

export function OverviewPage() {
  const t = useText();
  const registry = useRegistry();
  const overview = useOverview(registry);
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
          <Tiles seen={seen} />
          <Card title={t.overview.heat}>
            <HeatStrip />
          </Card>
          <Grid gap="md">
            <Grid.Col span={{ base: 12, md: 7 }}>
              <Card title={t.overview.incidents} isFlush>
                <Incidents incidents={seen.incidents} />
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
