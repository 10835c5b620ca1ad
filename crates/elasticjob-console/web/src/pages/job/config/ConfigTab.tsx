import { Alert, Button } from "@mantine/core";
import { useState } from "react";

import { useAction } from "../../../api/action";
import { requestWithEtag } from "../../../api/client";
import { jobPath, queryKeys, useConfig, type VersionedConfiguration } from "../../../api/queries";
import type { JobDetails, Properties, StoredConfig } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { Icon } from "../../../components/Icon";
import { ErrorState, Loading } from "../../../components/states";
import { useText } from "../../../i18n";
import { ConfigForm } from "./ConfigForm";

export function ConfigTab({ job }: { job: JobDetails }) {
  const registry = useRegistry();
  const config = useConfig(registry, job.jobName);
  if (config.isPending) return <Loading rows={10} />;
  if (config.isError && !config.data) {
    return <ErrorState error={config.error} onRetry={() => void config.refetch()} />;
  }
  if (!config.data.properties) return <UnreadableConfig problem={config.data.problem ?? ""} />;
  return <ConfigEditor job={job.jobName} latest={config.data} />;
}

function UnreadableConfig({ problem }: { problem: string }) {
  const t = useText();
  return (
    <Alert color="red" variant="light" title={t.job.unreadable} icon={<Icon name="alert" />}>
      {problem}
    </Alert>
  );
}

/** Edits the version that was loaded first, and shows a notice if a newer one is stored. */
function ConfigEditor({ job, latest }: { job: string; latest: VersionedConfiguration }) {
  const t = useText();
  const registry = useRegistry();
  const [base, setBase] = useState(latest);
  const isStale = latest.version !== base.version;
  const store = useAction<Properties, StoredConfig>({
    send: async (properties) => {
      const at = `${jobPath(registry, job)}/config`;
      return (await requestWithEtag<StoredConfig>("PUT", at, properties, { "If-Match": base.etag }))
        .data;
    },
    successMessage: (stored) =>
      stored.isChanged ? t.config.stored(stored.version) : t.config.unchanged,
    invalidates: [
      queryKeys.job(registry, job),
      queryKeys.shards(registry, job),
      queryKeys.jobs(registry),
    ],
    // The form shows this problem, with a way to resolve it.
    onProblem: (problem) => problem.code === "preconditionFailed",
    onSuccess: (stored, sent) =>
      setBase({
        ...base,
        version: stored.version,
        etag: `"${stored.version}"`,
        properties: stored.config ?? sent,
      }),
  });
  return (
    <ConfigForm
      job={job}
      base={base.properties ?? {}}
      about={t.config.version(base.version)}
      writtenAt={base.writtenAt ?? undefined}
      store={store}
      invalidates={[queryKeys.job(registry, job)]}
      conflictNotice={
        isStale
          ? (rebase) => (
              <Alert color="yellow" variant="light" icon={<Icon name="alert" />} role="alert">
                {t.config.conflict(latest.version)}{" "}
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => {
                    rebase(latest.properties ?? {});
                    setBase(latest);
                  }}
                >
                  {t.config.rebase}
                </Button>
              </Alert>
            )
          : undefined
      }
    />
  );
}
