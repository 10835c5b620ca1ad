import { Box, Text } from "@mantine/core";
import { Link } from "react-router";

import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { ChoiceField } from "../../parts/ChoiceField";
import { DataTable } from "../../parts/DataTable";
import { FilterBar } from "../../parts/FilterBar";
import { useFilters } from "../../parts/filters";
import { Listed } from "../../parts/Listed";
import { Older } from "../../parts/Older";
import { PageHead } from "../../parts/PageHead";
import { Empty } from "../../parts/states";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import { useRuns, type Run } from "./api";
import { RunBadge } from "./RunBadge";

/** What ran, the newest first. */
export function RunsPage() {
  const t = useText();
  const registry = useRegistry();
  const filters = useFilters(["job", "state", "source", "instance"]);
  const runs = useRuns(registry, filters);
  return (
    <>
      <PageHead title={t.nav.runs} about={t.runs.about} />
      <Box className="card">
        <FilterBar filters={filters}>
          <ChoiceField
            filters={filters}
            name="state"
            label={t.runs.state}
            choices={["running", "done", "failed", "cancelled"]}
            words={t.runs.states}
          />
          <ChoiceField
            filters={filters}
            name="source"
            label={t.runs.source}
            choices={["schedule", "trigger"]}
            words={t.runs.sources}
          />
        </FilterBar>
        <Listed
          asked={runs}
          isEmpty={({ items }) => items.length === 0}
          empty={
            <Empty icon="history" title={filters.isNarrowed ? t.nothingFound : t.runs.none}>
              {filters.isNarrowed && t.history.wholeNames}
            </Empty>
          }
        >
          {({ items, next }) => (
            <>
              <Rows runs={items} />
              <Older after={filters.after} next={next} onAfter={filters.turn} />
            </>
          )}
        </Listed>
      </Box>
    </>
  );
}

function Rows({ runs }: { runs: Run[] }) {
  const t = useText();
  const to = useTo();
  return (
    <DataTable
      label={t.nav.runs}
      width={820}
      rows={runs}
      keyOf={(run) => run.runId}
      marks={(run) => ({ "data-run": run.runId, "data-job": run.jobName })}
      columns={[
        {
          head: t.runs.started,
          cell: (run) => (
            <Link className="name" to={to("runs", run.runId)}>
              <When at={run.startedAt ?? run.dueAt} />
            </Link>
          ),
        },
        {
          head: t.runs.job,
          isTitle: true,
          cell: (run) => (
            <>
              <Link className="name" to={to("jobs", run.jobName)}>
                {run.jobName}
              </Link>
              {run.failure && (
                <Text size="xs" c="var(--bad)" lineClamp={1}>
                  {run.failure}
                </Text>
              )}
            </>
          ),
        },
        { head: t.runs.state, cell: (run) => <RunBadge state={run.state} /> },
        {
          head: t.runs.shards,
          className: "numeric",
          cell: (run) => `${run.done}/${run.shards}`,
        },
        {
          head: t.runs.took,
          className: "numeric",
          cell: (run) => (run.durationMs === null ? "–" : duration(run.durationMs)),
        },
        {
          head: t.runs.late,
          className: "numeric",
          cell: (run) => (run.latenessMs === null ? "–" : duration(run.latenessMs)),
        },
        {
          head: t.runs.source,
          cell: (run) => (
            <>
              {t.runs.sources[run.source] ?? run.source}
              {run.triggeredBy && ` · ${run.triggeredBy}`}
            </>
          ),
        },
      ]}
    />
  );
}
