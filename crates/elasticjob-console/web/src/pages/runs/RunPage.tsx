import { Anchor, Breadcrumbs, Button, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { toProblem } from "../../api/problem";
import { useJob, useTrigger } from "../../api/queries";
import type { JobDetails, RunDetails } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Card } from "../../components/Card";
import { DescriptionItem, DescriptionList } from "../../components/DescriptionList";
import { Icon } from "../../components/Icon";
import { JobLink } from "../../components/JobLink";
import { NoHistory } from "../../components/NoHistory";
import { PageHeader } from "../../components/PageHeader";
import { RequireRole } from "../../components/RequireRole";
import { EmptyState, ErrorState, Loading } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { dateTime, formatDuration } from "../../components/time";
import { useText } from "../../i18n";
import { CancelDialog } from "../job/CancelDialog";
import { TriggerDialog } from "../job/TriggerDialog";
import { runQueueTime } from "../job/triggers/queueTime";
import { useRun } from "./api";
import { OutputCard } from "./OutputCard";
import { RunBadge } from "./RunBadge";
import { RunSource } from "./RunSource";
import { TimelineCard } from "./TimelineCard";
import { TracesCard } from "./TracesCard";

export function RunPage() {
  const t = useText();
  const to = useRegistryLink();
  const { run: runId = "" } = useParams();
  const run = useRun(useRegistry(), runId);
  const code = run.isError ? toProblem(run.error).code : "";
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("runs")} fz="sm">
          {t.nav.runs}
        </Anchor>
        <span className="wrap">{runId}</span>
      </Breadcrumbs>
      {run.data ? (
        <RunView run={run.data} />
      ) : run.isPending ? (
        <Loading />
      ) : code === "noHistory" ? (
        <NoHistory />
      ) : code === "notFound" ? (
        <EmptyState icon="clock" title={t.history.notRecorded}>
          {t.history.notRecordedAbout}
        </EmptyState>
      ) : (
        <ErrorState error={run.error} onRetry={() => void run.refetch()} />
      )}
    </>
  );
}

function RunView({ run }: { run: RunDetails }) {
  const t = useText();
  const registry = useRegistry();
  const job = useJob(registry, run.jobName);
  const trigger = useTrigger(registry, run.jobName, run.runId, run.source === "trigger").data;
  const queueTime = trigger ? runQueueTime(trigger, run) : null;
  const start = run.startedAt ?? run.dueAt;
  // What someone asked for is no failure.
  const isCancelled = run.state === "cancelled";
  return (
    <>
      <PageHeader
        title={t.runs.title(run.jobName)}
        tabTitle={start ? dateTime(start) : undefined}
        badge={<RunBadge state={run.state} />}
        about={
          <>
            <JobLink name={run.jobName} />
            {run.source && (
              <>
                {" "}
                · <RunSource source={run.source} />
              </>
            )}
            {run.triggeredBy && ` · ${t.history.by(run.triggeredBy)}`} · <Timestamp at={start} />
          </>
        }
      >
        <RunActions run={run} job={job.data} />
      </PageHeader>
      <Stack gap="md">
        {run.failure && (
          <Card title={isCancelled ? t.runs.reason : t.runs.failure}>
            <Text
              component="pre"
              m={0}
              size="sm"
              c={isCancelled ? undefined : "var(--bad)"}
              className="mono cause"
            >
              {run.failure}
            </Text>
          </Card>
        )}
        <Card>
          <DescriptionList>
            <DescriptionItem term={t.history.due}>
              {run.dueAt && <Timestamp at={run.dueAt} />}
            </DescriptionItem>
            <DescriptionItem term={t.runs.started}>
              <Timestamp at={run.startedAt} />
            </DescriptionItem>
            <DescriptionItem term={t.history.ended}>
              {run.endedAt && <Timestamp at={run.endedAt} />}
            </DescriptionItem>
            <DescriptionItem term={t.runs.duration}>
              {run.durationMs !== null && formatDuration(run.durationMs)}
            </DescriptionItem>
            <DescriptionItem term={t.runs.startDelay}>
              {run.latenessMs !== null && formatDuration(run.latenessMs)}
            </DescriptionItem>
            <DescriptionItem term={t.runs.shards}>
              {`${run.done} / ${run.expectedShards ?? run.shardingTotalCount ?? run.shards}`}
            </DescriptionItem>
            <DescriptionItem term={t.history.untrackedShards}>
              {run.untrackedShards ? t.history.runByJava(run.untrackedShards) : null}
            </DescriptionItem>
            <DescriptionItem term={t.history.failedShards}>
              {run.failed > 0 && run.failed}
            </DescriptionItem>
            <DescriptionItem term={t.runs.attempts}>{run.attempts}</DescriptionItem>
            <DescriptionItem term={t.runs.reason}>
              {run.source && <RunSource source={run.source} />}
            </DescriptionItem>
            <DescriptionItem term={t.history.triggeredBy}>{run.triggeredBy}</DescriptionItem>
            <DescriptionItem term={t.triggers.requested}>
              {trigger?.requestedAt && <Timestamp at={trigger.requestedAt} />}
            </DescriptionItem>
            <DescriptionItem term={t.triggers.queueTime}>
              {queueTime !== null && formatDuration(queueTime)}
            </DescriptionItem>
            <DescriptionItem term={t.triggers.parameter}>
              {trigger?.parameter && <span className="mono">{trigger.parameter}</span>}
            </DescriptionItem>
            <DescriptionItem term={t.history.traceId}>
              {run.traceId && <span className="mono">{run.traceId}</span>}
            </DescriptionItem>
          </DescriptionList>
        </Card>
        <TimelineCard attempts={run.executions} known={job.data?.instanceList} />
        <TracesCard run={run} />
        <OutputCard runId={run.runId} shards={run.items.map((each) => each.item)} />
      </Stack>
    </>
  );
}

/** Cancels a running run, or retries the failed shards of an ended one. */
function RunActions({ run, job }: { run: RunDetails; job: JobDetails | undefined }) {
  return run.state === "running" ? <CancelAction run={run} /> : <RetryAction run={run} job={job} />;
}

function CancelAction({ run }: { run: RunDetails }) {
  const t = useText();
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <RequireRole minimum="operator">
        {(isRefused) => (
          <Button
            variant="default"
            leftSection={<Icon name="stop" />}
            disabled={isRefused}
            onClick={() => setOpen(true)}
          >
            {t.history.cancel}
          </Button>
        )}
      </RequireRole>
      {isOpen && <CancelDialog job={run.jobName} request={{ run: run.runId }} onClose={close} />}
    </>
  );
}

function RetryAction({ run, job }: { run: RunDetails; job: JobDetails | undefined }) {
  const t = useText();
  const [isOpen, setOpen] = useState(false);
  const failed = run.items
    .filter(({ state }) => state !== "done" && state !== "running")
    .map(({ item }) => item);
  if (failed.length === 0) return null;
  return (
    <>
      <RequireRole minimum="operator">
        {(isRefused) => (
          <Button
            variant="default"
            leftSection={<Icon name="play" />}
            // A removed job cannot run.
            disabled={isRefused || !job}
            onClick={() => setOpen(true)}
          >
            {t.history.retry(failed.length, run.state === "cancelled")}
          </Button>
        )}
      </RequireRole>
      {isOpen && job && (
        <RetryDialog run={run} job={job} failed={failed} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

/** Triggers the failed shards again with the same logical time. The parameter of a trigger is not recorded. */
function RetryDialog({
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
  const to = useRegistryLink();
  const navigate = useNavigate();
  // A scheduled run had the job parameter.
  const isParameterUnknown = run.source === "trigger";
  return (
    <TriggerDialog
      job={job}
      initial={{ shards: failed, at: run.dueAt ?? undefined }}
      note={isParameterUnknown ? t.history.parameterUnknown : undefined}
      onTriggered={({ runId }) => void navigate(to("runs", runId))}
      onClose={onClose}
    />
  );
}
