import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { queryString } from "../../api/client";
import type { RunDetails } from "../../api/types";
import { useRegistryLink } from "../../app/registry";
import { Card } from "../../components/Card";
import { useText } from "../../i18n";
import { TraceTable } from "../history/Traces";

const MAX_TRACES = 50;

/** Status changes of a run, newest first. */
export function TracesCard({ run }: { run: RunDetails }) {
  const t = useText();
  const to = useRegistryLink();
  if (run.traces.length === 0) return null;
  const newest = [...run.traces].sort((a, b) => at(b.creationTime) - at(a.creationTime));
  return (
    <Card
      title={t.history.tabs.traces}
      isFlush
      right={
        <Anchor
          component={Link}
          size="sm"
          to={`${to("history", "traces")}${queryString({ job: run.jobName })}`}
        >
          {t.history.allTraces}
        </Anchor>
      }
    >
      <TraceTable rows={newest.slice(0, MAX_TRACES)} isSingleRun />
    </Card>
  );
}

const at = (instant: string | null) => (instant ? Date.parse(instant) : 0);
