import { Box, Text } from "@mantine/core";

import type { Run } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { CursorList } from "../../components/CursorList";
import { DataTable } from "../../components/DataTable";
import { FilterBar } from "../../components/FilterBar";
import { useFilters } from "../../components/filters";
import { JobLink } from "../../components/JobLink";
import { PageHeader } from "../../components/PageHeader";
import { RunTimeLink } from "../../components/RunTimeLink";
import { SelectFilter } from "../../components/SelectFilter";
import { formatDuration } from "../../components/time";
import { useText } from "../../i18n";
import { useRuns } from "./api";
import { RunBadge } from "./RunBadge";
import { RunSource } from "./RunSource";

/** All runs, newest first. */
export function RunsPage() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "state", "source", "instance"]);
  const runs = useRuns(registry, filters);
  return (
    <>
      <PageHeader title={t.nav.runs} about={t.runs.about} />
      <Box className="card">
        <FilterBar filters={filters}>
          <SelectFilter
            filters={filters}
            name="state"
            label={t.runs.state}
            choices={["running", "done", "incomplete", "failed", "cancelled"]}
            labels={t.runs.states}
          />
          <SelectFilter
            filters={filters}
            name="source"
            label={t.runs.reason}
            choices={["schedule", "trigger"]}
            labels={t.runs.reasons}
          />
        </FilterBar>
        <CursorList query={runs} filters={filters} emptyTitle={t.runs.none}>
          {(items) => <RunTable runs={items} />}
        </CursorList>
      </Box>
    </>
  );
}

function RunTable({ runs }: { runs: Run[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.nav.runs}
      width={820}
      rows={runs}
      keyOf={(run) => run.runId}
      attributes={(run) => ({ "data-run": run.runId, "data-job": run.jobName })}
      columns={[
        {
          header: t.runs.started,
          cell: (run) => <RunTimeLink runId={run.runId} at={run.startedAt ?? run.dueAt} />,
        },
        {
          header: t.runs.job,
          isTitle: true,
          cell: (run) => (
            <>
              <JobLink name={run.jobName} />
              {run.failure && (
                <Text
                  size="xs"
                  c={run.state === "cancelled" ? "dimmed" : "var(--bad)"}
                  lineClamp={1}
                >
                  {run.failure}
                </Text>
              )}
            </>
          ),
        },
        { header: t.runs.state, cell: (run) => <RunBadge state={run.state} /> },
        {
          header: t.runs.shards,
          className: "numeric",
          cell: (run) => `${run.done}/${run.expectedShards ?? run.shards}`,
        },
        {
          header: t.runs.duration,
          className: "numeric",
          cell: (run) => (run.durationMs === null ? "–" : formatDuration(run.durationMs)),
        },
        {
          header: t.runs.startDelay,
          className: "numeric",
          cell: (run) => (run.latenessMs === null ? "–" : formatDuration(run.latenessMs)),
        },
        {
          header: t.runs.reason,
          cell: (run) => (
            <>
              <RunSource source={run.source} />
              {run.triggeredBy && ` · ${run.triggeredBy}`}
            </>
          ),
        },
      ]}
    />
  );
}
