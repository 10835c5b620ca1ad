import type { AttemptState, RunState } from "../../api/types";
import { Badge, type Tone } from "../../components/Badge";
import { useText } from "../../i18n";

export const STATE_TONES: Record<AttemptState | RunState, Tone> = {
  running: "busy",
  done: "ok",
  incomplete: "warn",
  failed: "bad",
  timed_out: "bad",
  cancelled: "warn",
  fenced: "warn",
  lost: "bad",
};

export function RunBadge({ state }: { state: AttemptState | RunState }) {
  return (
    <Badge tone={STATE_TONES[state] ?? "off"} isAlive={state === "running"}>
      {useText().runs.states[state] ?? state}
    </Badge>
  );
}
