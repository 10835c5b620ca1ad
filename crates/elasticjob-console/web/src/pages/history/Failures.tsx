import { Anchor, Box, Group, Text } from "@mantine/core";
import { Link } from "react-router";

import { queryString } from "../../api/client";
import type { FailureGroup } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { DataTable } from "../../components/DataTable";
import { FilterBar } from "../../components/FilterBar";
import { useFilters } from "../../components/filters";
import { JobLink } from "../../components/JobLink";
import { QueryList } from "../../components/QueryList";
import { EmptyState } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";
import { useFailures } from "./api";
import classes from "./Failures.module.css";

/** Failures grouped by message. */
export function Failures() {
  const t = useText();
  const filters = useFilters(["job"], "24h");
  const failures = useFailures(useRegistry(), filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} />
      <QueryList
        query={failures}
        isEmpty={(groups) => groups.length === 0}
        empty={
          <EmptyState icon="check" title={t.history.noFailures}>
            {t.history.noFailuresAbout}
          </EmptyState>
        }
      >
        {(groups) => <FailureTable rows={groups} />}
      </QueryList>
    </Box>
  );
}

/** The failed attempts of a group's job and time; a run that succeeded on a retry has some, too. */
const attemptsOf = ({ jobName, first, last }: FailureGroup) => ({
  job: jobName,
  success: "false",
  from: first ?? undefined,
  // The end of a time span is exclusive.
  to: last ? new Date(Date.parse(last) + 1).toISOString() : undefined,
});

function FailureTable({ rows }: { rows: FailureGroup[] }) {
  const t = useText();
  const to = useRegistryLink();
  const most = Math.max(...rows.map((row) => row.count));
  return (
    <DataTable
      label={t.history.tabs.failures ?? ""}
      width={820}
      rows={rows}
      keyOf={(row) => `${row.jobName} ${row.message}`}
      attributes={(row) => ({ "data-failure": row.jobName })}
      columns={[
        {
          header: t.history.message,
          cell: (row) => (
            <Text size="sm" className="mono wrap" lineClamp={3} maw={520}>
              {row.message}
            </Text>
          ),
        },
        {
          header: t.runs.job,
          cell: (row) => <JobLink name={row.jobName} />,
        },
        {
          header: t.history.count,
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
        { header: t.history.first, cell: (row) => <Timestamp at={row.first} /> },
        { header: t.history.last, cell: (row) => <Timestamp at={row.last} /> },
        {
          header: t.history.links,
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
                to={`${to("history")}${queryString(attemptsOf(row))}`}
              >
                {t.history.failedAttempts}
              </Anchor>
            </Group>
          ),
        },
      ]}
    />
  );
}
