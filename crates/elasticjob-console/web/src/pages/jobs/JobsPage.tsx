import { Box, Button, Group } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useMemo, useState } from "react";
import { Link } from "react-router";

import { isNoHistoryError, useFigures } from "../../api/history";
import { toProblem } from "../../api/problem";
import { useJobs } from "../../api/queries";
import { useHasRole, useRegistry, useRegistryLink } from "../../app/registry";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { Pager } from "../../components/Pager";
import { EmptyState, ErrorState, Loading } from "../../components/states";
import { useText } from "../../i18n";
import { BulkBar } from "./BulkBar";
import { JobCards } from "./JobCards";
import { JobsSearch } from "./JobsSearch";
import { JobsTable } from "./JobsTable";
import { useJobsQuery } from "./jobsQuery";
import { useRefetchPastFires } from "./refetchPastFires";
import { StatusChips } from "./StatusChips";
import { ViewsMenu } from "./ViewsMenu";

export function JobsPage() {
  const t = useText();
  const to = useRegistryLink();
  const registry = useRegistry();
  const isAdmin = useHasRole("admin");
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const [query, change] = useJobsQuery();
  const jobs = useJobs(registry, query);
  const [searchResets, setSearchResets] = useState(0);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useRefetchPastFires(jobs);
  const figuresQuery = useFigures(registry, jobs.data?.items.map((row) => row.jobName) ?? []);
  const figures = useMemo(
    () => new Map((figuresQuery.data ?? []).map((each) => [each.jobName, each])),
    [figuresQuery.data],
  );
  // A new search clears the selection, so that actions affect only visible jobs.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect runs when these change, and reads none of them.
  useEffect(() => setSelected(new Set()), [query.search, query.status, query.page]);

  const isSearchInvalid = jobs.isError && toProblem(jobs.error).field === "search";
  const page = jobs.data;
  const List = isNarrow ? JobCards : JobsTable;
  return (
    <>
      <PageHeader title={t.nav.jobs} about={page && t.jobs.count(total(page.statuses))}>
        {isAdmin && (
          <Button component={Link} to={to("new-job")} leftSection={<Icon name="plus" />}>
            {t.jobs.create}
          </Button>
        )}
      </PageHeader>
      <Box className="card">
        <JobsSearch
          key={searchResets}
          value={query.search}
          problem={isSearchInvalid ? toProblem(jobs.error) : null}
          onChange={(search) => change({ search })}
        />
        <Group gap="xs" pr="sm" wrap="nowrap">
          <StatusChips
            counts={page?.statuses}
            chosen={query.status}
            onChange={(status) => change({ status })}
          />
          <ViewsMenu />
        </Group>
        {page && selected.size > 0 && (
          <BulkBar query={query} total={page.total} selected={selected} onSelect={setSelected} />
        )}
        {jobs.isPending ? (
          <Loading rows={10} />
        ) : jobs.isError && !isSearchInvalid && !page ? (
          <ErrorState error={jobs.error} onRetry={() => void jobs.refetch()} />
        ) : page && page.items.length > 0 ? (
          <>
            <List
              rows={page.items}
              figures={isNoHistoryError(figuresQuery.error) ? null : figures}
              query={query}
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
        ) : isSearchInvalid ? null : query.search || query.status ? (
          <EmptyState icon="search" title={t.jobs.noneFound}>
            <Button
              variant="default"
              size="compact-sm"
              onClick={() => {
                // A new field, without typing that is not applied yet.
                setSearchResets((resets) => resets + 1);
                change({ search: "", status: "" });
              }}
            >
              {t.jobs.showAll}
            </Button>
          </EmptyState>
        ) : (
          <EmptyState icon="jobs" title={t.jobs.none}>
            {t.jobs.noneAbout}
          </EmptyState>
        )}
      </Box>
    </>
  );
}

const total = (statuses: Record<string, number>) =>
  Object.values(statuses).reduce((sum, count) => sum + count, 0);
