import { Box } from "@mantine/core";

import { queryString, request } from "../../api/client";
import { registryPath } from "../../api/queries";
import type { Execution, Page, ServerRow } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { CursorList } from "../../components/CursorList";
import { DataTable } from "../../components/DataTable";
import { FilterBar } from "../../components/FilterBar";
import { useFilters } from "../../components/filters";
import { JobLink } from "../../components/JobLink";
import { RunTimeLink } from "../../components/RunTimeLink";
import { SelectFilter } from "../../components/SelectFilter";
import { SuggestField } from "../../components/SuggestField";
import { formatDuration } from "../../components/time";
import { useText } from "../../i18n";
import { AttemptCause, AttemptDetail, AttemptReason } from "../runs/Attempt";
import { RunBadge } from "../runs/RunBadge";
import { exportLinks, useExecutions } from "./api";

/** Every attempt of every shard: Java ElasticJob's execution trace, extended. */
export function Executions() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "ip", "success"]);
  const executions = useExecutions(registry, filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} exports={exportLinks(registry, "executions", filters)}>
        <SuggestField
          label={t.history.server}
          value={filters.value("ip")}
          onChange={(ip) => filters.change({ ip })}
          source={["servers", registry]}
          suggest={async (search) => {
            const path = `${registryPath(registry)}/servers${queryString({ search, pageSize: 12 })}`;
            return (await request<Page<ServerRow>>("GET", path)).items.map((each) => each.serverIp);
          }}
        />
        <SelectFilter
          filters={filters}
          name="success"
          label={t.history.outcome}
          choices={["true", "false"]}
          labels={t.history.outcomes}
        />
      </FilterBar>
      <CursorList query={executions} filters={filters} emptyTitle={t.runs.none}>
        {(items) => <ExecutionTable rows={items} />}
      </CursorList>
    </Box>
  );
}

function ExecutionTable({ rows }: { rows: Execution[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.executions ?? ""}
      width={880}
      rows={rows}
      keyOf={(row) => row.id}
      attributes={(row) => ({ "data-execution": row.id, "data-job": row.jobName })}
      detail={(row) => <AttemptDetail attempt={row} />}
      columns={[
        {
          header: t.runs.started,
          cell: (row) => <RunTimeLink runId={row.runId} at={row.startTime} />,
        },
        {
          header: t.runs.job,
          isTitle: true,
          cell: (row) => (
            <>
              <JobLink name={row.jobName} />
              <AttemptCause attempt={row} />
            </>
          ),
        },
        { header: t.shards.item, className: "numeric", cell: (row) => row.shardingItem },
        { header: t.runs.state, cell: (row) => <RunBadge state={row.state} /> },
        { header: t.history.reason, cell: (row) => <AttemptReason attempt={row} /> },
        { header: t.history.server, className: "mono", cell: (row) => row.ip },
        {
          header: t.runs.duration,
          className: "numeric",
          cell: (row) => (row.durationMs === null ? "–" : formatDuration(row.durationMs)),
        },
        {
          header: t.runs.startDelay,
          className: "numeric",
          cell: (row) => (row.latenessMs === null ? "–" : formatDuration(row.latenessMs)),
        },
      ]}
    />
  );
}
