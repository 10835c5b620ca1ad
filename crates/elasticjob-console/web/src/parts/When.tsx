import { Text } from "@mantine/core";

import { useLocale, useText } from "../i18n";
import { Hint } from "./Hint";
import { useNow } from "./now";
import { brief, relative, stamp, viewerZone, zoneName } from "./time";

interface Props {
  at: string | null | undefined;
  /** The zone of what is shown, if it has one of its own. */
  zone?: string | null;
  /** Shows how far away it is, instead of when. */
  isRelative?: boolean;
}

/** An instant: in words or by the clock; hovering says it in every zone that matters. */
export function When({ at, zone, isRelative = false }: Props) {
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
    const own = zoneName(zone);
    return (
      <>
        <div>
          {stamp(time, locale)} · {viewerZone()} ({t.time.yours})
        </div>
        {own && (
          <div>
            {stamp(time, locale, own)} · {zone} ({t.time.theJobs})
          </div>
        )}
        <div>{stamp(time, locale, "UTC")} · UTC</div>
      </>
    );
  };
  return (
    <Hint label={label}>
      <time className="numeric" dateTime={at}>
        {isRelative ? relative(time, now, locale) : brief(time, locale, now)}
      </time>
    </Hint>
  );
}
