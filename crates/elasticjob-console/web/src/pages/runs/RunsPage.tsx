import { Box, Text } from "@mantine/core";

import type { Run } from "../../api/history";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { ChoiceField } from "../../parts/ChoiceField";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { JobLink } from "../../parts/JobLink";
import { ListedBack } from "../../parts/ListedBack";
import { PageHead } from "../../parts/PageHead";
import { RunTime } from "../../parts/RunTime";
import { duration } from "../../parts/time";
import { useRuns } from "./api";
import { RunBadge } from "./RunBadge";

/** What ran, the newest first. */
export function RunsPage() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "state", "source", "instance"]);
  const runs = useRuns(registry, filters);
  return (
    <>
      <PageHead title={t.nav.runs} about={t.runs.about} />
      <Box className="card">
        <FilterBar filters={filters}>
          <ChoiceField
            filters={filters}
            name="state"
            label={t.runs.state}
            choices={["running", "done", "failed", "cancelled"]}
            words={t.runs.states}
          />
          <ChoiceField
            filters={filters}
            name="source"
            label={t.runs.source}
            choices={["schedule", "trigger"]}
            words={t.runs.sources}
          />
        </FilterBar>
        <ListedBack asked={runs} filters={filters} none={t.runs.none}>
          {(items) => <Rows runs={items} />}
        </ListedBack>
      </Box>
    </>
  );
}

function Rows({ runs }: { runs: Run[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.nav.runs}
      width={820}
      rows={runs}
      keyOf={(run) => run.runId}
      marks={(run) => ({ "data-run": run.runId, "data-job": run.jobName })}
      columns={[
        {
          head: t.runs.started,
          cell: (run) => <RunTime runId={run.runId} at={run.startedAt ?? run.dueAt} />,
        },
        {
          head: t.runs.job,
          isTitle: true,
          cell: (run) => (
            <>
              <JobLink name={run.jobName} />
              {run.failure && (
                <Text size="xs" c="var(--bad)" lineClamp={1}>
                  {run.failure}
                </Text>
              )}
            </>
          ),
        },
        { head: t.runs.state, cell: (run) => <RunBadge state={run.state} /> },
        {
          head: t.runs.shards,
          className: "numeric",
          cell: (run) => `${run.done}/${run.shards}`,
        },
        {
          head: t.runs.took,
          className: "numeric",
          cell: (run) => (run.durationMs === null ? "–" : duration(run.durationMs)),
        },
        {
          head: t.runs.late,
          className: "numeric",
          cell: (run) => (run.latenessMs === null ? "–" : duration(run.latenessMs)),
        },
        {
          head: t.runs.source,
          cell: (run) => (
            <>
              {t.runs.sources[run.source] ?? run.source}
              {run.triggeredBy && ` · ${run.triggeredBy}`}
            </>
          ),
        },
      ]}
    />
  );
}
