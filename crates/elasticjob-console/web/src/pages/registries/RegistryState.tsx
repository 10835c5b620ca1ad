import type { Registry } from "../../api/types";
import { Badge, type Tone } from "../../components/Badge";
import { useText } from "../../i18n";

const TONES: Record<Registry["state"], Tone> = {
  idle: "off",
  connecting: "busy",
  connected: "ok",
  down: "bad",
};

export function RegistryState({ state }: { state: Registry["state"] }) {
  return <Badge tone={TONES[state]}>{useText().registries.states[state]}</Badge>;
}
