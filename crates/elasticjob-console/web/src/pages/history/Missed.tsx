import { Box, Text } from "@mantine/core";

import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { JobLink } from "../../parts/JobLink";
import { Listed } from "../../parts/Listed";
import { Empty } from "../../parts/states";
import { When } from "../../parts/When";
import { type MissedFires, useMissed } from "./api";

/** Fires that never ran. */
export function Missed() {
  const t = useText();
  const filters = useFilters(["job"], "24h");
  const missed = useMissed(useRegistry(), filters);
  return (
    <Box className="card">
      <FilterBar filters={filters} />
      <Listed
        asked={missed}
        isEmpty={(rows) => rows.length === 0}
        empty={
          <Empty icon="check" title={t.history.noMissed}>
            {t.history.noMissedAbout}
          </Empty>
        }
      >
        {(rows) => <Rows rows={rows} />}
      </Listed>
    </Box>
  );
}

function Rows({ rows }: { rows: MissedFires[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.history.tabs.missed ?? ""}
      width={720}
      rows={rows}
      keyOf={(row) => `${row.jobName} ${row.first} ${row.why}`}
      marks={(row) => ({ "data-missed": row.jobName })}
      columns={[
        {
          head: t.runs.job,
          cell: (row) => <JobLink name={row.jobName} />,
        },
        {
          head: t.history.why,
          isWide: true,
          cell: (row) => (
            <>
              <Badge tone={row.why === "skipped" ? "warn" : "bad"}>
                {t.history.whys[row.why] ?? row.why}
              </Badge>
              <Text size="xs" c="dimmed" mt={2}>
                {t.history.whysAbout[row.why]}
              </Text>
            </>
          ),
        },
        { head: t.history.count, className: "numeric", cell: (row) => row.count.toLocaleString() },
        { head: t.history.firstDue, cell: (row) => <When at={row.first} /> },
        { head: t.history.lastDue, cell: (row) => <When at={row.last} /> },
        { head: t.history.noticed, cell: (row) => <When at={row.noticedAt} /> },
      ]}
    />
  );
}
