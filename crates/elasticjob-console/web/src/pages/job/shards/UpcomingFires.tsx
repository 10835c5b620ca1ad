import { Stack, Text } from "@mantine/core";
import { useEffect } from "react";

import { useFires } from "../../../api/queries";
import type { JobDetails } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { FireList } from "../../../components/FireList";
import { useNow } from "../../../components/now";
import { ErrorState, Loading } from "../../../components/states";
import { isJobDisabled } from "../../../components/statuses";
import { useText } from "../../../i18n";

export function UpcomingFires({ job }: { job: JobDetails }) {
  const t = useText();
  const now = useNow();
  const registry = useRegistry();
  const cron = job.config.properties?.cron;
  const zone = job.config.properties?.timeZone ?? null;
  const isDisabled = isJobDisabled(job.status, job.config.properties?.disabled === true);
  const fires = useFires(registry, job.jobName, 20, Boolean(cron) && !isDisabled);
  const upcoming = (fires.data ?? []).filter((at) => new Date(at).getTime() > now);
  const isRunningOut = fires.isSuccess && upcoming.length < 8 && fires.data.length === 20;
  const { refetch } = fires;
  useEffect(() => {
    if (isRunningOut) void refetch();
  }, [isRunningOut, refetch]);

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
      {isDisabled ? (
        <Text size="sm" c="dimmed">
          {t.fires.disabled}
        </Text>
      ) : fires.data ? (
        <FireList fires={upcoming.slice(0, 8)} zone={zone} />
      ) : fires.isError ? (
        <ErrorState error={fires.error} />
      ) : (
        <Loading rows={4} />
      )}
    </Stack>
  );
}
