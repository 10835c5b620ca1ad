import { Checkbox } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";

import type { JobDetails } from "../../api/types";
import { useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Confirm } from "../../parts/Confirm";
import { useJobActs } from "./acts";

export function Remove({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const t = useText();
  const to = useTo();
  const navigate = useNavigate();
  const { remove } = useJobActs(job.jobName);
  const [force, setForce] = useState(false);
  const members = job.instanceList.length;
  return (
    <Confirm
      title={t.job.removeTitle(job.jobName)}
      happens={t.job.removeHappens(job.shardingTotalCount ?? 0)}
      warning={members > 0 ? t.job.removeMembers(members) : t.job.removeWarning}
      button={t.job.remove}
      typed={job.jobName}
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate({ force }, { onSuccess: () => void navigate(to("jobs")) })}
      onClose={onClose}
    >
      {members > 0 && (
        <Checkbox
          size="sm"
          label={t.job.removeForce}
          checked={force}
          onChange={(event) => setForce(event.currentTarget.checked)}
        />
      )}
    </Confirm>
  );
}
