import type { HistoryState } from "../../api/history";
import { Badge, type Tone } from "../../components/Badge";
import { useText } from "../../i18n";

export const STATE_TONES: Record<HistoryState, Tone> = {
  running: "busy",
  done: "ok",
  failed: "bad",
  timed_out: "bad",
  cancelled: "warn",
  fenced: "warn",
  lost: "bad",
};

export function RunBadge({ state }: { state: HistoryState }) {
  return (
    <Badge tone={STATE_TONES[state] ?? "off"} isAlive={state === "running"}>
      {useText().runs.states[state] ?? state}
    </Badge>
  );
}
