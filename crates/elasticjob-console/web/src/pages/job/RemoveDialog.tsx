import { Checkbox } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";

import type { JobDetails } from "../../api/types";
import { useRegistryLink } from "../../app/registry";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";

export function RemoveDialog({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const t = useText();
  const to = useRegistryLink();
  const navigate = useNavigate();
  const { remove } = useJobActions(job.jobName);
  const [force, setForce] = useState(false);
  const instanceCount = job.instanceList.length;
  return (
    <ConfirmDialog
      title={t.job.removeTitle(job.jobName)}
      consequences={t.job.removeConsequences(job.shardingTotalCount ?? 0)}
      warning={instanceCount > 0 ? t.job.removeHasInstances(instanceCount) : t.job.removeWarning}
      button={t.job.remove}
      confirmText={job.jobName}
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate({ force }, { onSuccess: () => void navigate(to("jobs")) })}
      onClose={onClose}
    >
      {instanceCount > 0 && (
        <Checkbox
          size="sm"
          label={t.job.removeForce}
          checked={force}
          onChange={(event) => setForce(event.currentTarget.checked)}
        />
      )}
    </ConfirmDialog>
  );
}
