import { Box, Button, Group, Select, Table, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Link, useSearchParams } from "react-router";

import { asProblem } from "../../api/problem";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { PageHead } from "../../parts/PageHead";
import { Scroll } from "../../parts/Scroll";
import { Empty, Failure, Loading } from "../../parts/states";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import { useRuns, type Run } from "./api";
import { RunBadge } from "./RunBadge";

const STATES = ["running", "done", "failed", "cancelled"];

/** What ran, the newest first. */
export function RunsPage() {
  const t = useText();
  const registry = useRegistry();
  const [params, setParams] = useSearchParams();
  const [job] = useDebouncedValue(params.get("job") ?? "", 250);
  const state = params.get("state") ?? "";
  const after = params.get("after") ?? "";
  const runs = useRuns(registry, { job, state, after });
  const change = (key: string, value: string, replace = true) => {
    const next = new URLSearchParams(params);
    if (key !== "after") next.delete("after");
    if (value) next.set(key, value);
    else next.delete(key);
    setParams(next, { replace });
  };
  const isMissing = runs.isError && asProblem(runs.error).code === "noHistory";
  return (
    <>
      <PageHead title={t.nav.runs} about={t.runs.about} />
      <Box className="card">
        <Group p="sm" gap="sm">
          <TextInput
            data-search
            aria-label={t.runs.job}
            placeholder={t.runs.job}
            value={params.get("job") ?? ""}
            onChange={(event) => change("job", event.currentTarget.value)}
          />
          <Select
            aria-label={t.runs.state}
            placeholder={t.runs.state}
            data={STATES.map((value) => ({ value, label: t.runs.states[value] ?? value }))}
            value={state || null}
            onChange={(value) => change("state", value ?? "")}
            clearable
            clearButtonProps={{ "aria-label": t.config.clear }}
          />
        </Group>
        {isMissing ? (
          <Empty icon="history" title={t.runs.noHistory}>
            {t.runs.noHistoryAbout}
          </Empty>
        ) : runs.isPending ? (
          <Loading />
        ) : !runs.data ? (
          <Failure error={runs.error} again={() => void runs.refetch()} />
        ) : runs.data.items.length === 0 ? (
          <Empty icon="history" title={job || state ? t.nothingFound : t.runs.none} />
        ) : (
          <>
            <Rows runs={runs.data.items} />
            <Group justify="flex-end" p="sm" gap="xs">
              {after && (
                <Button variant="default" size="compact-sm" onClick={() => change("after", "")}>
                  {t.runs.newest}
                </Button>
              )}
              {runs.data.next && (
                <Button
                  variant="default"
                  size="compact-sm"
                  onClick={() => change("after", runs.data.next ?? "", false)}
                >
                  {t.runs.older}
                </Button>
              )}
            </Group>
          </>
        )}
      </Box>
    </>
  );
}

function Rows({ runs }: { runs: Run[] }) {
  const t = useText();
  const to = useTo();
  return (
    <Scroll label={t.nav.runs}>
      <Table highlightOnHover miw={820}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.runs.started}</Table.Th>
            <Table.Th>{t.runs.job}</Table.Th>
            <Table.Th>{t.runs.state}</Table.Th>
            <Table.Th>{t.runs.shards}</Table.Th>
            <Table.Th>{t.runs.took}</Table.Th>
            <Table.Th>{t.runs.late}</Table.Th>
            <Table.Th>{t.runs.source}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.runId}>
              <Table.Td>
                <Link className="name" to={to("runs", run.runId)}>
                  <When at={run.startedAt ?? run.dueAt} />
                </Link>
              </Table.Td>
              <Table.Td>
                <Link className="name" to={to("jobs", run.jobName)}>
                  {run.jobName}
                </Link>
                {run.failure && (
                  <Text size="xs" c="var(--bad)" lineClamp={1}>
                    {run.failure}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <RunBadge state={run.state} />
              </Table.Td>
              <Table.Td className="numeric">
                {run.done}/{run.shards}
              </Table.Td>
              <Table.Td className="numeric">
                {run.durationMs === null ? "–" : duration(run.durationMs)}
              </Table.Td>
              <Table.Td className="numeric">
                {run.latenessMs === null ? "–" : duration(run.latenessMs)}
              </Table.Td>
              <Table.Td>
                {t.runs.sources[run.source] ?? run.source}
                {run.triggeredBy && ` · ${run.triggeredBy}`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Scroll>
  );
}
