import { Anchor, Breadcrumbs, Button, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { asProblem } from "../../api/problem";
import { useJob } from "../../api/queries";
import type { JobDetails } from "../../api/types";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Allowed } from "../../parts/Allowed";
import { Card } from "../../parts/Card";
import { Fact, Facts } from "../../parts/Facts";
import { Icon } from "../../parts/Icon";
import { JobLink } from "../../parts/JobLink";
import { NoHistory } from "../../parts/NoHistory";
import { PageHead } from "../../parts/PageHead";
import { Empty, Failure, Loading } from "../../parts/states";
import { duration } from "../../parts/time";
import { When } from "../../parts/When";
import { useJobActs } from "../job/acts";
import { Trigger } from "../job/Trigger";
import { type RunDetails, useRun } from "./api";
import { OutputCard } from "./OutputCard";
import { RunBadge } from "./RunBadge";
import { TimelineCard } from "./TimelineCard";
import { TracesCard } from "./TracesCard";

export function RunPage() {
  const t = useText();
  const to = useTo();
  const { run: runId = "" } = useParams();
  const run = useRun(useRegistry(), runId);
  const code = run.isError ? asProblem(run.error).code : "";
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("runs")} fz="sm">
          {t.nav.runs}
        </Anchor>
        <span className="wrap">{runId}</span>
      </Breadcrumbs>
      {run.data ? (
        <Found run={run.data} />
      ) : run.isPending ? (
        <Loading />
      ) : code === "noHistory" ? (
        <NoHistory />
      ) : code === "notFound" ? (
        <Empty icon="clock" title={t.history.notYet}>
          {t.history.notYetAbout}
        </Empty>
      ) : (
        <Failure error={run.error} again={() => void run.refetch()} />
      )}
    </>
  );
}

function Found({ run }: { run: RunDetails }) {
  const t = useText();
  const job = useJob(useRegistry(), run.jobName);
  return (
    <>
      <PageHead
        title={t.runs.title(run.jobName)}
        badge={<RunBadge state={run.state} />}
        about={
          <>
            <JobLink name={run.jobName} /> · {t.runs.sources[run.source] ?? run.source}
            {run.triggeredBy && ` · ${t.history.by(run.triggeredBy)}`} ·{" "}
            <When at={run.startedAt ?? run.dueAt} />
          </>
        }
      >
        <Acts run={run} job={job.data} />
      </PageHead>
      <Stack gap="md">
        {run.failure && (
          <Card title={t.runs.failure}>
            <Text component="pre" m={0} size="sm" c="var(--bad)" className="mono cause">
              {run.failure}
            </Text>
          </Card>
        )}
        <Card>
          <Facts>
            <Fact word={t.history.due}>{run.dueAt && <When at={run.dueAt} />}</Fact>
            <Fact word={t.runs.started}>
              <When at={run.startedAt} />
            </Fact>
            <Fact word={t.history.ended}>{run.endedAt && <When at={run.endedAt} />}</Fact>
            <Fact word={t.runs.took}>{run.durationMs !== null && duration(run.durationMs)}</Fact>
            <Fact word={t.runs.late}>{run.latenessMs !== null && duration(run.latenessMs)}</Fact>
            <Fact word={t.runs.shards}>
              {`${run.done} / ${run.shardingTotalCount ?? run.shards}`}
            </Fact>
            <Fact word={t.history.failedShards}>{run.failed > 0 && run.failed}</Fact>
            <Fact word={t.runs.attempts}>{run.attempts}</Fact>
            <Fact word={t.runs.source}>{t.runs.sources[run.source] ?? run.source}</Fact>
            <Fact word={t.history.triggeredBy}>{run.triggeredBy}</Fact>
            <Fact word={t.history.parameter}>{run.parameter}</Fact>
            <Fact word={t.history.traceId}>
              {run.traceId && <span className="mono">{run.traceId}</span>}
            </Fact>
          </Facts>
        </Card>
        <TimelineCard attempts={run.executions} known={job.data?.instanceList} />
        <TracesCard run={run} />
        <OutputCard runId={run.runId} shards={run.items.map((each) => each.item)} />
      </Stack>
    </>
  );
}

/** What can be done about a run: stop it, or run again what failed. */
function Acts({ run, job }: { run: RunDetails; job: JobDetails | undefined }) {
  const t = useText();
  const acts = useJobActs(run.jobName);
  const [isOpen, setOpen] = useState(false);
  const failed = run.items
    .filter(({ state }) => state !== "done" && state !== "running")
    .map(({ item }) => item);
  if (run.state === "running") {
    return (
      <Allowed needs="operator">
        {(isRefused) => (
          <Button
            variant="default"
            leftSection={<Icon name="stop" />}
            disabled={isRefused}
            loading={acts.cancel.isPending}
            onClick={() => acts.cancel.mutate({ run: run.runId })}
          >
            {t.history.cancel}
          </Button>
        )}
      </Allowed>
    );
  }
  if (failed.length === 0) return null;
  return (
    <>
      <Allowed needs="operator">
        {(isRefused) => (
          <Button
            variant="default"
            leftSection={<Icon name="play" />}
            // A job that is gone cannot run.
            disabled={isRefused || !job}
            onClick={() => setOpen(true)}
          >
            {t.history.again(failed.length)}
          </Button>
        )}
      </Allowed>
      {isOpen && job && (
        <Again run={run} job={job} failed={failed} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

/** What failed, run again as it ran: the same shards, for the same time, with the same parameter where that is known. */
function Again({
  run,
  job,
  failed,
  onClose,
}: {
  run: RunDetails;
  job: JobDetails;
  failed: number[];
  onClose: () => void;
}) {
  const t = useText();
  const to = useTo();
  const navigate = useNavigate();
  const { parameter } = run;
  // What was due by itself had the job's own parameter.
  const isUnknown = run.source === "trigger" && parameter === undefined;
  return (
    <Trigger
      job={job}
      first={{ shards: failed, at: run.dueAt ?? undefined, parameter: parameter ?? undefined }}
      note={isUnknown ? t.history.parameterUnknown : undefined}
      onDone={({ runId }) => void navigate(to("runs", runId))}
      onClose={onClose}
    />
  );
}
