import { Anchor, Box, Group, Text } from "@mantine/core";
import { Link } from "react-router";

import { query } from "../../api/client";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { JobLink } from "../../parts/JobLink";
import { Listed } from "../../parts/Listed";
import { Empty } from "../../parts/states";
import { When } from "../../parts/When";
import { type FailureGroup, useFailures } from "./api";
import classes from "./Failures.module.css";

/** What went wrong; what is alike is one. */
export function Failures() {
  const t = useText();
  const filters = useFilters(["job"], "24h");
  const failures = useFailures(useRegistry(), filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} />
      <Listed
        asked={failures}
        isEmpty={(groups) => groups.length === 0}
        empty={
          <Empty icon="check" title={t.history.noFailures}>
            {t.history.noFailuresAbout}
          </Empty>
        }
      >
        {(groups) => <Rows rows={groups} />}
      </Listed>
    </Box>
  );
}

function Rows({ rows }: { rows: FailureGroup[] }) {
  const t = useText();
  const to = useTo();
  const most = Math.max(...rows.map((row) => row.count));
  return (
    <DataTable
      label={t.history.tabs.failures ?? ""}
      width={820}
      rows={rows}
      keyOf={(row) => `${row.jobName} ${row.message}`}
      marks={(row) => ({ "data-failure": row.jobName })}
      columns={[
        {
          head: t.history.message,
          cell: (row) => (
            <Text size="sm" className="mono wrap" lineClamp={3} maw={520}>
              {row.message}
            </Text>
          ),
        },
        {
          head: t.runs.job,
          cell: (row) => <JobLink name={row.jobName} />,
        },
        {
          head: t.history.count,
          className: "numeric",
          width: 130,
          cell: (row) => (
            <Group gap={8} wrap="nowrap">
              <span>{row.count.toLocaleString()}</span>
              <span
                className={classes.share}
                style={{ width: `${Math.max(4, (row.count / most) * 64)}px` }}
                aria-hidden="true"
              />
            </Group>
          ),
        },
        { head: t.history.first, cell: (row) => <When at={row.first} /> },
        { head: t.history.last, cell: (row) => <When at={row.last} /> },
        {
          head: t.history.look,
          cell: (row) => (
            <Group gap={12}>
              {row.lastRunId && (
                <Anchor component={Link} size="sm" to={to("runs", row.lastRunId)}>
                  {t.history.lastRun}
                </Anchor>
              )}
              <Anchor
                component={Link}
                size="sm"
                to={`${to("runs")}${query({ job: row.jobName, state: "failed" })}`}
              >
                {t.history.failedRuns}
              </Anchor>
            </Group>
          ),
        },
      ]}
    />
  );
}
