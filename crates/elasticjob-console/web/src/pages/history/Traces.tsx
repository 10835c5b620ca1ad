import { Box, Text } from "@mantine/core";

import type { Trace } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { Badge, type Tone } from "../../components/Badge";
import { CursorList } from "../../components/CursorList";
import { DataTable } from "../../components/DataTable";
import { FilterBar } from "../../components/FilterBar";
import { useFilters } from "../../components/filters";
import { JobLink } from "../../components/JobLink";
import { RunTimeLink } from "../../components/RunTimeLink";
import { SelectFilter } from "../../components/SelectFilter";
import { useText } from "../../i18n";
import { exportLinks, useTraces } from "./api";
import { newestFirst } from "./traceOrder";

const TONES: Record<string, Tone> = {
  TASK_STAGING: "off",
  TASK_RUNNING: "busy",
  TASK_FINISHED: "ok",
  TASK_FAILED: "bad",
  TASK_ERROR: "bad",
  TASK_KILLED: "warn",
  TASK_LOST: "bad",
};

/** Status changes that instances reported, with the states of Java ElasticJob. */
export function Traces() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "state"]);
  const traces = useTraces(registry, filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} exports={exportLinks(registry, "traces", filters)}>
        <SelectFilter
          filters={filters}
          name="state"
          label={t.runs.state}
          choices={Object.keys(TONES)}
          labels={t.history.traceStates}
        />
      </FilterBar>
      <CursorList query={traces} filters={filters} emptyTitle={t.history.noTraces}>
        {(items) => <TraceTable rows={newestFirst(items)} />}
      </CursorList>
    </Box>
  );
}

/** Table of status changes; for a single run it has no job column and no links to the run. */
export function TraceTable({
  rows,
  isSingleRun = false,
}: {
  rows: Trace[];
  isSingleRun?: boolean;
}) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.traces ?? ""}
      width={760}
      rows={rows}
      keyOf={(row) => row.id}
      attributes={(row) => ({ "data-trace": row.id, "data-job": row.jobName })}
      columns={[
        {
          header: t.audit.at,
          cell: (row) => (
            <RunTimeLink runId={isSingleRun ? null : row.runId} at={row.creationTime} />
          ),
        },
        ...(isSingleRun
          ? []
          : [
              {
                header: t.runs.job,
                isTitle: true,
                cell: (row: Trace) => <JobLink name={row.jobName} />,
              },
            ]),
        {
          header: t.runs.state,
          cell: (row) => (
            <Badge tone={TONES[row.state] ?? "off"}>
              {t.history.traceStates[row.state] ?? row.state}
            </Badge>
          ),
        },
        {
          header: t.shards.title,
          className: "numeric",
          cell: (row) => row.shardingItems.replace(/[[\]]/g, "") || "–",
        },
        { header: t.history.server, className: "mono", cell: (row) => row.slaveId || "–" },
        {
          header: t.history.message,
          isWide: true,
          cell: (row) => (
            <Text size="sm" c="dimmed" className="wrap">
              {row.message || "–"}
            </Text>
          ),
        },
      ]}
    />
  );
}
