import { useText } from "../../i18n";
import { Badge, type Tone } from "../../parts/Badge";
import type { HistoryState } from "./api";

const TONES: Record<HistoryState, Tone> = {
  running: "busy",
  done: "ok",
  failed: "bad",
  timed_out: "bad",
  cancelled: "warn",
  fenced: "warn",
};

export function RunBadge({ state }: { state: HistoryState }) {
  return (
    <Badge tone={TONES[state] ?? "off"} isAlive={state === "running"}>
      {useText().runs.states[state] ?? state}
    </Badge>
  );
}
