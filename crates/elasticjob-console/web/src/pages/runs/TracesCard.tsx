import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { queryString } from "../../api/client";
import type { RunDetails } from "../../api/types";
import { useRegistryLink } from "../../app/registry";
import { Card } from "../../components/Card";
import { useText } from "../../i18n";
import { TraceTable } from "../history/Traces";
import { newestFirst } from "../history/traceOrder";

const MAX_TRACES = 50;

/** Status changes of a run, newest first. */
export function TracesCard({ run }: { run: RunDetails }) {
  const t = useText();
  const to = useRegistryLink();
  if (run.traces.length === 0) return null;
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
      <TraceTable rows={newestFirst(run.traces).slice(0, MAX_TRACES)} isSingleRun />
    </Card>
  );
}
