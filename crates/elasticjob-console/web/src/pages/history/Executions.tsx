import { Box } from "@mantine/core";

import { ask, query } from "../../api/client";
import { atRegistry } from "../../api/queries";
import type { Page, ServerRow } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { ChoiceField } from "../../parts/ChoiceField";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { JobLink } from "../../parts/JobLink";
import { ListedBack } from "../../parts/ListedBack";
import { RunTime } from "../../parts/RunTime";
import { SuggestField } from "../../parts/SuggestField";
import { duration } from "../../parts/time";
import { AttemptCause, AttemptDetail, AttemptReason } from "../runs/Attempt";
import { type Execution, stateOf } from "../runs/api";
import { RunBadge } from "../runs/RunBadge";
import { filesOf, useExecutions } from "./api";

/** Every attempt of every shard: the ancestor's trace, and more. */
export function Executions() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "ip", "success"]);
  const executions = useExecutions(registry, filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} files={filesOf(registry, "executions", filters)}>
        <SuggestField
          label={t.history.ip}
          value={filters.value("ip")}
          onChange={(ip) => filters.change({ ip })}
          about={["servers", registry]}
          suggest={async (search) => {
            const path = `${atRegistry(registry)}/servers${query({ search, pageSize: 12 })}`;
            return (await ask<Page<ServerRow>>("GET", path)).items.map((each) => each.serverIp);
          }}
        />
        <ChoiceField
          filters={filters}
          name="success"
          label={t.history.success}
          choices={["true", "false"]}
          words={t.history.successes}
        />
      </FilterBar>
      <ListedBack asked={executions} filters={filters} none={t.runs.none}>
        {(items) => <Rows rows={items} />}
      </ListedBack>
    </Box>
  );
}

function Rows({ rows }: { rows: Execution[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.executions ?? ""}
      width={880}
      rows={rows}
      keyOf={(row) => row.id}
      marks={(row) => ({ "data-execution": row.id, "data-job": row.jobName })}
      detail={(row) => <AttemptDetail attempt={row} />}
      columns={[
        {
          head: t.runs.started,
          cell: (row) => <RunTime runId={row.runId} at={row.startTime} />,
        },
        {
          head: t.runs.job,
          isTitle: true,
          cell: (row) => (
            <>
              <JobLink name={row.jobName} />
              <AttemptCause attempt={row} />
            </>
          ),
        },
        { head: t.shards.item, className: "numeric", cell: (row) => row.shardingItem },
        { head: t.runs.state, cell: (row) => <RunBadge state={stateOf(row)} /> },
        { head: t.history.reason, cell: (row) => <AttemptReason attempt={row} /> },
        { head: t.history.ip, className: "mono", cell: (row) => row.ip },
        {
          head: t.runs.took,
          className: "numeric",
          cell: (row) => (row.durationMs === null ? "–" : duration(row.durationMs)),
        },
        {
          head: t.runs.late,
          className: "numeric",
          cell: (row) => (row.latenessMs === null ? "–" : duration(row.latenessMs)),
        },
      ]}
    />
  );
}
