import { Box, Button, Group } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useMemo, useState } from "react";
import { Link } from "react-router";

import { isWithoutHistory, useFigures } from "../../api/history";
import { asProblem } from "../../api/problem";
import { useJobs } from "../../api/queries";
import { useMay, useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Icon } from "../../parts/Icon";
import { PageHead } from "../../parts/PageHead";
import { Pager } from "../../parts/Pager";
import { Empty, Failure, Loading } from "../../parts/states";
import { useAsked } from "./asked";
import { BulkBar } from "./BulkBar";
import { useFreshFires } from "./fresh";
import { JobCards } from "./JobCards";
import { JobsSearch } from "./JobsSearch";
import { JobsTable } from "./JobsTable";
import { StatusChips } from "./StatusChips";
import { Views } from "./Views";

export function JobsPage() {
  const t = useText();
  const to = useTo();
  const registry = useRegistry();
  const mayRule = useMay("admin");
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const [asked, change] = useAsked();
  const jobs = useJobs(registry, asked);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useFreshFires(jobs);
  const past = useFigures(registry, jobs.data?.items.map((row) => row.jobName) ?? []);
  const figures = useMemo(
    () => new Map((past.data ?? []).map((each) => [each.jobName, each])),
    [past.data],
  );
  // What is no longer looked for must not be acted on.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs because these change, and reads none of them.
  useEffect(() => setSelected(new Set()), [asked.search, asked.status, asked.page]);

  const wrongSearch = jobs.isError && asProblem(jobs.error).field === "search";
  const page = jobs.data;
  const List = isNarrow ? JobCards : JobsTable;
  return (
    <>
      <PageHead title={t.nav.jobs} about={page && t.jobs.count(total(page.statuses))}>
        {mayRule && (
          <Button component={Link} to={to("new-job")} leftSection={<Icon name="plus" />}>
            {t.jobs.create}
          </Button>
        )}
      </PageHead>
      <Box className="card">
        <JobsSearch
          value={asked.search}
          problem={wrongSearch ? asProblem(jobs.error) : null}
          onChange={(search) => change({ search })}
        />
        <Group gap="xs" pr="sm" wrap="nowrap">
          <StatusChips
            counts={page?.statuses}
            chosen={asked.status}
            onChange={(status) => change({ status })}
          />
          <Views />
        </Group>
        {page && selected.size > 0 && (
          <BulkBar asked={asked} total={page.total} selected={selected} onSelect={setSelected} />
        )}
        {jobs.isPending ? (
          <Loading rows={10} />
        ) : jobs.isError && !wrongSearch && !page ? (
          <Failure error={jobs.error} again={() => void jobs.refetch()} />
        ) : page && page.items.length > 0 ? (
          <>
            <List
              rows={page.items}
              figures={isWithoutHistory(past.error) ? null : figures}
              asked={asked}
              onChange={change}
              selected={selected}
              onSelect={setSelected}
            />
            <Pager
              page={page.page}
              pageSize={page.pageSize}
              total={page.total}
              onPage={(number) => change({ page: number })}
            />
          </>
        ) : wrongSearch ? null : asked.search || asked.status ? (
          <Empty icon="search" title={t.jobs.noneFound}>
            <Button
              variant="default"
              size="compact-sm"
              onClick={() => change({ search: "", status: "" })}
            >
              {t.jobs.showAll}
            </Button>
          </Empty>
        ) : (
          <Empty icon="jobs" title={t.jobs.none}>
            {t.jobs.noneAbout}
          </Empty>
        )}
      </Box>
    </>
  );
}

const total = (statuses: Record<string, number>) =>
  Object.values(statuses).reduce((sum, count) => sum + count, 0);
