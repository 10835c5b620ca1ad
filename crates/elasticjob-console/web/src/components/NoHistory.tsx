import { Anchor, Code } from "@mantine/core";
import { Link } from "react-router";

import { useRegistry } from "../app/registry";
import { isAdmin, useSession } from "../app/session";
import { useText } from "../i18n";
import { EmptyState } from "./states";

/** Explains how to configure a history store for the registry. */
export function NoHistory() {
  const t = useText();
  const session = useSession();
  const registry = useRegistry();
  return (
    <EmptyState icon="history" title={t.history.noHistory(registry)}>
      {t.history.noHistoryAbout}
      <Code block my="xs" ta="left" className="wrap" style={{ whiteSpace: "pre-wrap" }}>
        elasticjob run --history postgres://db/history …{"\n"}
        elasticjob console --history {registry}=postgres://db/history …
      </Code>
      {isAdmin(session) && session.canAddHistories && (
        <Anchor component={Link} to="/registries/histories" size="sm">
          {t.histories.add}
        </Anchor>
      )}
    </EmptyState>
  );
}
