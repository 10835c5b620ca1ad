import type { Registry } from "../../api/types";
import { useText } from "../../i18n";
import { Badge, type Tone } from "../../parts/Badge";

const TONES: Record<Registry["state"], Tone> = {
  idle: "off",
  connecting: "busy",
  connected: "ok",
  down: "bad",
};

export function RegistryState({ state }: { state: Registry["state"] }) {
  return <Badge tone={TONES[state]}>{useText().registries.states[state]}</Badge>;
}
