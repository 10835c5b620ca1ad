import { Stack, Text } from "@mantine/core";
import { useEffect } from "react";

import { useFires } from "../../../api/queries";
import type { JobDetails } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { useText } from "../../../i18n";
import { FireList } from "../../../parts/FireList";
import { useNow } from "../../../parts/now";
import { Failure, Loading } from "../../../parts/states";

/** When it is due next. */
export function Fires({ job }: { job: JobDetails }) {
  const t = useText();
  const now = useNow();
  const registry = useRegistry();
  const cron = job.config.properties?.cron;
  const zone = job.config.properties?.timeZone ?? null;
  const fires = useFires(registry, job.jobName, 20, Boolean(cron));
  const upcoming = (fires.data ?? []).filter((at) => new Date(at).getTime() > now);
  const isShort = fires.isSuccess && upcoming.length < 8 && fires.data.length === 20;
  const { refetch } = fires;
  useEffect(() => {
    if (isShort) void refetch();
  }, [isShort, refetch]);

  if (!cron) {
    return (
      <Text size="sm" c="dimmed">
        {t.fires.oneOff}
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      <Text size="sm" component="div">
        <span className="mono">{cron}</span>{" "}
        <Text span size="xs" c="dimmed">
          {zone ?? t.fires.machineZone}
        </Text>
      </Text>
      {fires.isPending && <Loading rows={4} />}
      {fires.isError && !fires.data && <Failure error={fires.error} />}
      {fires.data && <FireList fires={upcoming.slice(0, 8)} zone={zone} />}
    </Stack>
  );
}
