import type { JobDetails } from "../../api/types";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";

export function ShutDownDialog({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const t = useText();
  const { shutdown } = useJobActions(job.jobName);
  return (
    <ConfirmDialog
      title={t.job.shutdownTitle(job.jobName)}
      consequences={t.job.shutdownConsequences(job.instanceList.length)}
      warning={t.job.shutdownWarning}
      button={t.job.shutdown}
      isBusy={shutdown.isPending}
      onConfirm={() => shutdown.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
