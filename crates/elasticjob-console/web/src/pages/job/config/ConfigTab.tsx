import { Alert, Button } from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../../api/act";
import { exchange } from "../../../api/client";
import { atJob, keys, useConfig, type Versioned } from "../../../api/queries";
import type { JobDetails, Properties, Stored } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { useText } from "../../../i18n";
import { Icon } from "../../../parts/Icon";
import { Failure, Loading } from "../../../parts/states";
import { ConfigForm } from "./ConfigForm";

export function ConfigTab({ job }: { job: JobDetails }) {
  const registry = useRegistry();
  const config = useConfig(registry, job.jobName);
  if (config.isPending) return <Loading rows={10} />;
  if (config.isError && !config.data) {
    return <Failure error={config.error} again={() => void config.refetch()} />;
  }
  if (!config.data.properties) return <Unreadable problem={config.data.problem ?? ""} />;
  return <Editing job={job.jobName} latest={config.data} />;
}

function Unreadable({ problem }: { problem: string }) {
  const t = useText();
  return (
    <Alert color="red" variant="light" title={t.job.unreadable} icon={<Icon name="alert" />}>
      {problem}
    </Alert>
  );
}

/** Edits the version that was seen first; if another is stored meanwhile, says so. */
function Editing({ job, latest }: { job: string; latest: Versioned }) {
  const t = useText();
  const registry = useRegistry();
  const [seen, setSeen] = useState(latest);
  const isOld = latest.version !== seen.version;
  const store = useAct<Properties, Stored>({
    run: async (properties) => {
      const at = `${atJob(registry, job)}/config`;
      return (await exchange<Stored>("PUT", at, properties, { "If-Match": seen.etag })).data;
    },
    done: (stored) => (stored.isChanged ? t.config.stored(stored.version) : t.config.same),
    touches: [keys.job(registry, job), keys.shards(registry, job), keys.jobs(registry)],
    // The form says that itself, where it can be mended.
    failed: (problem) => problem.code === "preconditionFailed",
    after: (stored, sent) =>
      setSeen({
        ...seen,
        version: stored.version,
        etag: `"${stored.version}"`,
        properties: stored.config ?? sent,
      }),
  });
  return (
    <ConfigForm
      job={job}
      base={seen.properties ?? {}}
      about={t.config.version(seen.version)}
      writtenAt={seen.writtenAt}
      store={store}
      touched={[keys.job(registry, job)]}
      newer={
        isOld
          ? (rebase) => (
              <Alert color="yellow" variant="light" icon={<Icon name="alert" />} role="alert">
                {t.config.newer(latest.version)}{" "}
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => {
                    rebase(latest.properties ?? {});
                    setSeen(latest);
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
