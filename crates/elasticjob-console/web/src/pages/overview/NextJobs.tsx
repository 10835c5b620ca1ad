import { Box, Group, Text } from "@mantine/core";

import type { Overview } from "../../api/types";
import { useText } from "../../i18n";
import { JobLink } from "../../parts/JobLink";
import { Empty } from "../../parts/states";
import { When } from "../../parts/When";

export function NextJobs({ next }: { next: Overview["next"] }) {
  const t = useText();
  if (next.length === 0) return <Empty icon="clock" title={t.overview.nothingDue} />;
  return (
    <Box component="ol" m={0} p={0} style={{ listStyle: "none" }}>
      {next.map((due) => (
        <Box
          component="li"
          key={due.jobName}
          px="md"
          py={6}
          style={{ borderTop: "1px solid var(--line)" }}
        >
          <Group justify="space-between" wrap="nowrap">
            <JobLink name={due.jobName} />
            <Text size="sm" component="div" style={{ whiteSpace: "nowrap" }}>
              <When at={due.at} />{" "}
              <Text span size="xs" c="dimmed">
                <When at={due.at} isRelative />
              </Text>
            </Text>
          </Group>
        </Box>
      ))}
    </Box>
  );
}
