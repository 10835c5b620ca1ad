import type { JobDetails } from "../../api/types";
import { useText } from "../../i18n";
import { Confirm } from "../../parts/Confirm";
import { useJobActs } from "./acts";

export function ShutDown({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const t = useText();
  const { shutdown } = useJobActs(job.jobName);
  return (
    <Confirm
      title={t.job.shutdownTitle(job.jobName)}
      happens={t.job.shutdownHappens(job.instanceList.length)}
      warning={t.job.shutdownWarning}
      button={t.job.shutdown}
      isBusy={shutdown.isPending}
      onConfirm={() => shutdown.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
