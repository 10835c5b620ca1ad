import { Box } from "@mantine/core";
import { Link } from "react-router";

import { ask, query } from "../../api/client";
import { atRegistry } from "../../api/queries";
import type { Page, ServerRow } from "../../api/types";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { ChoiceField } from "../../parts/ChoiceField";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { Listed } from "../../parts/Listed";
import { Older } from "../../parts/Older";
import { Empty } from "../../parts/states";
import { SuggestField } from "../../parts/SuggestField";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import { stateOf, type Execution } from "../runs/api";
import { AttemptCause, AttemptDetail, AttemptReason } from "../runs/Attempt";
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
      <Listed
        asked={executions}
        isEmpty={({ items }) => items.length === 0}
        empty={
          <Empty icon="history" title={filters.isNarrowed ? t.nothingFound : t.runs.none}>
            {filters.isNarrowed && t.history.wholeNames}
          </Empty>
        }
      >
        {({ items, next }) => (
          <>
            <Rows rows={items} />
            <Older after={filters.after} next={next} onAfter={filters.turn} />
          </>
        )}
      </Listed>
    </Box>
  );
}

function Rows({ rows }: { rows: Execution[] }) {
  const t = useText();
  const to = useTo();
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
          cell: (row) =>
            row.runId ? (
              <Link className="name" to={to("runs", row.runId)}>
                <When at={row.startTime} />
              </Link>
            ) : (
              <When at={row.startTime} />
            ),
        },
        {
          head: t.runs.job,
          isTitle: true,
          cell: (row) => (
            <>
              <Link className="name wrap" to={to("jobs", row.jobName)}>
                {row.jobName}
              </Link>
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
