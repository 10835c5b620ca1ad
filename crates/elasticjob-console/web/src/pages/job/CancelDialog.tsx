import type { CancelRequest } from "../../api/types";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";

/** Asks before running shards are cancelled: those of one run, one shard, or all of the job. */
export function CancelDialog({
  job,
  request,
  onClose,
}: {
  job: string;
  request: CancelRequest;
  onClose: () => void;
}) {
  const t = useText();
  const { cancel } = useJobActions(job);
  const [shard] = request.shards ?? [];
  return (
    <ConfirmDialog
      title={shard === undefined ? t.job.cancelTitle(job) : t.job.cancelShardTitle(job, shard)}
      consequences={t.job.cancelConsequences}
      button={t.job.cancelButton}
      isBusy={cancel.isPending}
      onConfirm={() => cancel.mutate(request, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
