import { Text } from "@mantine/core";

import { useLocale, useText } from "../i18n";
import { LazyTooltip } from "./LazyTooltip";
import { useNow } from "./now";
import { dateTime, relativeTime, shortTime, toIanaZone, viewerZone } from "./time";

interface Props {
  at: string | null | undefined;
  /** The job's time zone, if it has one. */
  zone?: string | null;
  /** Shows the distance from now instead of the time. */
  isRelative?: boolean;
}

/** An instant as a time or relative to now; the tooltip shows it in the viewer's zone, the job's zone and UTC. */
export function Timestamp({ at, zone, isRelative = false }: Props) {
  const t = useText();
  const locale = useLocale();
  const now = useNow();
  if (!at)
    return (
      <Text span c="dimmed" size="sm">
        –
      </Text>
    );
  const time = new Date(at).getTime();
  const label = () => {
    const jobZone = toIanaZone(zone);
    return (
      <>
        <div>
          {dateTime(time)} · {viewerZone()} ({t.time.viewer})
        </div>
        {jobZone && (
          <div>
            {dateTime(time, jobZone)} · {zone} ({t.time.job})
          </div>
        )}
        <div>{dateTime(time, "UTC")} · UTC</div>
      </>
    );
  };
  return (
    <LazyTooltip label={label}>
      <time className="numeric" dateTime={at}>
        {isRelative ? relativeTime(time, now, locale) : shortTime(time, now)}
      </time>
    </LazyTooltip>
  );
}
