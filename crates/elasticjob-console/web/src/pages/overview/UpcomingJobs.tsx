import { Box, Group, Text } from "@mantine/core";

import type { Overview } from "../../api/types";
import { JobLink } from "../../components/JobLink";
import { EmptyState } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";

export function UpcomingJobs({ next }: { next: Overview["next"] }) {
  const t = useText();
  if (next.length === 0) return <EmptyState icon="clock" title={t.overview.noneDue} />;
  return (
    <Box component="ol" m={0} p={0} style={{ listStyle: "none" }}>
      {next.map((fire) => (
        <Box
          component="li"
          key={fire.jobName}
          px="md"
          py={6}
          style={{ borderTop: "1px solid var(--line)" }}
        >
          <Group justify="space-between" wrap="nowrap">
            <JobLink name={fire.jobName} />
            <Text size="sm" component="div" style={{ whiteSpace: "nowrap" }}>
              <Timestamp at={fire.at} />{" "}
              <Text span size="xs" c="dimmed">
                <Timestamp at={fire.at} isRelative />
              </Text>
            </Text>
          </Group>
        </Box>
      ))}
    </Box>
  );
}
