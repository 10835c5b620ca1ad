import { Box, Checkbox, Group, Text } from "@mantine/core";

import { JobLink } from "../../components/JobLink";
import { JobStatusBadge } from "../../components/statuses";
import { useText } from "../../i18n";
import { JobMenu } from "./JobMenu";
import { JobRowBadges } from "./JobRowBadges";
import { type ListProps, toggle } from "./listProps";
import { NextFire } from "./NextFire";
import { Sparkline } from "./Sparkline";

/** The jobs list on small screens. */
export function JobCards({ rows, figures, selected, onSelect }: ListProps) {
  const t = useText();
  return (
    <Box component="ul" m={0} p={0} style={{ listStyle: "none" }} aria-label={t.nav.jobs}>
      {rows.map((row) => (
        <Box
          component="li"
          key={row.jobName}
          px="sm"
          py="xs"
          style={{ borderTop: "1px solid var(--line)" }}
          data-job={row.jobName}
        >
          <Group wrap="nowrap" align="flex-start" gap="sm">
            <Checkbox
              mt={3}
              size="xs"
              aria-label={t.jobs.select(row.jobName)}
              checked={selected.has(row.jobName)}
              onChange={() => onSelect(toggle(selected, row.jobName))}
            />
            <Box flex={1} miw={0}>
              <JobLink name={row.jobName} />
              <Text size="xs" c={row.problem ? "var(--bad)" : "dimmed"} lineClamp={1}>
                {row.problem ?? row.description}
              </Text>
              <Group gap={6} mt={4}>
                <JobStatusBadge status={row.status} isDisabledInConfig={row.disabled} />
                <JobRowBadges row={row} />
              </Group>
              <Group gap="md" mt={4}>
                <NextFire row={row} />
                <Text size="xs" c="dimmed" className="numeric">
                  {t.jobs.shardsOn(row.shardingTotalCount ?? 0, row.instanceCount)}
                </Text>
              </Group>
              {figures && (
                <Box mt={6}>
                  <Sparkline of={figures.get(row.jobName)} />
                </Box>
              )}
            </Box>
            <JobMenu row={row} />
          </Group>
        </Box>
      ))}
    </Box>
  );
}
