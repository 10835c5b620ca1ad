import { Group, Text } from "@mantine/core";

import { useText } from "../i18n";
import { useNow } from "./now";
import { Timestamp } from "./Timestamp";
import { shortTime, toIanaZone, viewerZone } from "./time";

/** Upcoming fires in the viewer's time zone and, if it differs, in the job's. */
export function FireList({ fires, zone }: { fires: string[]; zone: string | null }) {
  const t = useText();
  const now = useNow();
  const own = toIanaZone(zone);
  const isElsewhere = own !== undefined && own !== viewerZone();
  if (fires.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t.fires.never}
      </Text>
    );
  }
  return (
    <ol style={{ margin: 0, padding: 0, listStyle: "none" }}>
      {fires.map((at) => (
        <li key={at}>
          <Group justify="space-between" gap="xs" py={2} wrap="nowrap">
            <Text size="sm" component="div" className="numeric">
              <Timestamp at={at} zone={zone} />
              {isElsewhere && (
                <Text span size="xs" c="dimmed" ml={4}>
                  {viewerZone()}
                </Text>
              )}
              {isElsewhere && (
                <Text size="xs" c="dimmed">
                  {shortTime(at, now, own)} {zone}
                </Text>
              )}
            </Text>
            <Text size="xs" c="dimmed" component="div" style={{ whiteSpace: "nowrap" }}>
              <Timestamp at={at} zone={zone} isRelative />
            </Text>
          </Group>
        </li>
      ))}
    </ol>
  );
}
