import { Box, Text } from "@mantine/core";

import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Badge, type Tone } from "../../parts/Badge";
import { ChoiceField } from "../../parts/ChoiceField";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { JobLink } from "../../parts/JobLink";
import { ListedBack } from "../../parts/ListedBack";
import { RunTime } from "../../parts/RunTime";
import type { Trace } from "../runs/api";
import { filesOf, useTraces } from "./api";

const TONES: Record<string, Tone> = {
  TASK_STAGING: "off",
  TASK_RUNNING: "busy",
  TASK_FINISHED: "ok",
  TASK_FAILED: "bad",
  TASK_ERROR: "bad",
  TASK_KILLED: "warn",
  TASK_LOST: "bad",
};

/** What instances said of their parts of runs, in the ancestor's words. */
export function Traces() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "state"]);
  const traces = useTraces(registry, filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} files={filesOf(registry, "traces", filters)}>
        <ChoiceField
          filters={filters}
          name="state"
          label={t.runs.state}
          choices={Object.keys(TONES)}
          words={t.history.traceStates}
        />
      </FilterBar>
      <ListedBack asked={traces} filters={filters} none={t.history.noTraces}>
        {(items) => <TraceTable rows={items} />}
      </ListedBack>
    </Box>
  );
}

/** States that parts of runs came into; those of one run need not name it. */
export function TraceTable({ rows, isOfOne = false }: { rows: Trace[]; isOfOne?: boolean }) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.traces ?? ""}
      width={760}
      rows={rows}
      keyOf={(row) => row.id}
      marks={(row) => ({ "data-trace": row.id, "data-job": row.jobName })}
      columns={[
        {
          head: t.audit.at,
          cell: (row) => <RunTime runId={isOfOne ? null : row.runId} at={row.creationTime} />,
        },
        ...(isOfOne
          ? []
          : [
              {
                head: t.runs.job,
                isTitle: true,
                cell: (row: Trace) => <JobLink name={row.jobName} />,
              },
            ]),
        {
          head: t.runs.state,
          cell: (row) => (
            <Badge tone={TONES[row.state] ?? "off"}>
              {t.history.traceStates[row.state] ?? row.state}
            </Badge>
          ),
        },
        {
          head: t.shards.title,
          className: "numeric",
          cell: (row) => row.shardingItems.replace(/[[\]]/g, "") || "–",
        },
        { head: t.history.ip, className: "mono", cell: (row) => row.slaveId || "–" },
        {
          head: t.history.message,
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
