import { useText } from "../../i18n";

/** Why a run exists: its schedule or a trigger. Java ElasticJob does not record it. */
export function RunSource({ source }: { source: string | null }) {
  const t = useText();
  return source === null ? "–" : (t.runs.reasons[source] ?? source);
}
