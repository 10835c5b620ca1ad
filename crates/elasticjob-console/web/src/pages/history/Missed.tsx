import { Box, Text } from "@mantine/core";

import type { MissedFires } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { Badge } from "../../components/Badge";
import { DataTable } from "../../components/DataTable";
import { FilterBar } from "../../components/FilterBar";
import { useFilters } from "../../components/filters";
import { JobLink } from "../../components/JobLink";
import { QueryList } from "../../components/QueryList";
import { EmptyState } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";
import { useMissed } from "./api";

/** Reasons that an operator chose, or that a run answers. */
const MILD_REASONS = ["skipped", "coalesced"];

/** Missed and coalesced fires. */
export function Missed() {
  const t = useText();
  const filters = useFilters(["job"], "24h");
  const missed = useMissed(useRegistry(), filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} />
      <QueryList
        query={missed}
        isEmpty={(rows) => rows.length === 0}
        empty={
          <EmptyState icon="check" title={t.history.noMissed}>
            {t.history.noMissedAbout}
          </EmptyState>
        }
      >
        {(rows) => <MissedTable rows={rows} />}
      </QueryList>
    </Box>
  );
}

function MissedTable({ rows }: { rows: MissedFires[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.missed ?? ""}
      width={720}
      rows={rows}
      keyOf={(row) => `${row.jobName} ${row.first} ${row.reason}`}
      attributes={(row) => ({ "data-missed": row.jobName })}
      columns={[
        {
          header: t.runs.job,
          cell: (row) => <JobLink name={row.jobName} />,
        },
        {
          header: t.history.missedReason,
          isWide: true,
          cell: (row) => (
            <>
              <Badge tone={MILD_REASONS.includes(row.reason) ? "warn" : "bad"}>
                {t.history.missedReasons[row.reason] ?? row.reason}
              </Badge>
              <Text size="xs" c="dimmed" mt={2}>
                {t.history.missedReasonsAbout[row.reason]}
              </Text>
            </>
          ),
        },
        {
          header: t.history.count,
          className: "numeric",
          cell: (row) => row.count.toLocaleString(),
        },
        { header: t.history.firstDue, cell: (row) => <Timestamp at={row.first} /> },
        { header: t.history.lastDue, cell: (row) => <Timestamp at={row.last} /> },
        { header: t.history.noticed, cell: (row) => <Timestamp at={row.noticedAt} /> },
      ]}
    />
  );
}
