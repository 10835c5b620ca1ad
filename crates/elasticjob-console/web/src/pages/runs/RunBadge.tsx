import type { AttemptState } from "../../api/types";
import { Badge, type Tone } from "../../components/Badge";
import { useText } from "../../i18n";

export const STATE_TONES: Record<AttemptState, Tone> = {
  running: "busy",
  done: "ok",
  failed: "bad",
  timed_out: "bad",
  cancelled: "warn",
  fenced: "warn",
  lost: "bad",
};

export function RunBadge({ state }: { state: AttemptState }) {
  return (
    <Badge tone={STATE_TONES[state] ?? "off"} isAlive={state === "running"}>
      {useText().runs.states[state] ?? state}
    </Badge>
  );
}
