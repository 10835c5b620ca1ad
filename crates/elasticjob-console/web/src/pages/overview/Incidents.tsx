import { Anchor, Box, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import type { Incident } from "../../api/types";
import { useRegistryLink } from "../../app/registry";
import { Badge, type Tone } from "../../components/Badge";
import { JobLink } from "../../components/JobLink";
import { ServerMessage } from "../../components/ServerMessage";
import { EmptyState } from "../../components/states";
import { useText } from "../../i18n";

const TONES: Record<Incident["kind"], Tone> = {
  unreadable: "bad",
  crashed: "bad",
  ownerGone: "bad",
  stuck: "bad",
  missed: "bad",
  drift: "warn",
  awaitingFailover: "bad",
  shardingFlag: "warn",
  misfired: "warn",
};

const INITIAL_COUNT = 8;

/** Problems that need attention, each with a link to its explanation. */
export function Incidents({
  incidents,
  total,
  hasHistory,
}: {
  incidents: Incident[];
  total: number;
  hasHistory: boolean;
}) {
  const t = useText();
  const to = useRegistryLink();
  const [shown, setShown] = useState(INITIAL_COUNT);
  if (incidents.length === 0) {
    return (
      <EmptyState icon="check" title={t.overview.noIncidents}>
        {t.overview.noIncidentsAbout}
        {!hasHistory && ` ${t.overview.missedNotRecorded}`}
      </EmptyState>
    );
  }
  return (
    <Box component="ul" m={0} p={0} style={{ listStyle: "none" }}>
      {incidents.slice(0, shown).map((incident) => (
        <Box
          component="li"
          key={`${incident.jobName} ${incident.kind}`}
          px="md"
          py="xs"
          style={{ borderTop: "1px solid var(--line)" }}
        >
          <Group gap="sm">
            <Badge tone={TONES[incident.kind]}>{t.overview.kinds[incident.kind]}</Badge>
            <JobLink name={incident.jobName} />
            <Anchor
              component={Link}
              size="sm"
              ml="auto"
              to={to("jobs", incident.jobName, "explain")}
            >
              {t.overview.explain}
            </Anchor>
          </Group>
          <ServerMessage
            text={t.overview.describe(incident.kind, incident.message)}
            message={incident.message}
          />
        </Box>
      ))}
      {total > incidents.length && (
        <Box component="li" px="md" py="xs" style={{ borderTop: "1px solid var(--line)" }}>
          <Text size="sm" c="var(--warn)">
            {t.overview.truncated(incidents.length, total)}
          </Text>
        </Box>
      )}
      {incidents.length > shown && (
        <Box component="li" p="xs" ta="center" style={{ borderTop: "1px solid var(--line)" }}>
          <Button variant="subtle" size="compact-sm" onClick={() => setShown(incidents.length)}>
            {t.overview.more(incidents.length - shown)}
          </Button>
        </Box>
      )}
    </Box>
  );
}
