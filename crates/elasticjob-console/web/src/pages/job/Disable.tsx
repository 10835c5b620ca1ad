import type { JobDetails } from "../../api/types";
import { useText } from "../../i18n";
import { Confirm } from "../../parts/Confirm";
import { useJobActs } from "./acts";

export function Disable({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const t = useText();
  const { disable } = useJobActs(job.jobName);
  const running = job.instanceCount;
  return (
    <Confirm
      title={t.job.disableTitle(job.jobName)}
      happens={t.job.disableHappens(job.servers.length, running)}
      button={t.job.disable}
      isBusy={disable.isPending}
      isDangerous={false}
      onConfirm={() => disable.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
