import { ConfirmDialog } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";

export function DisableDialog({
  name,
  servers = null,
  instances,
  onClose,
}: {
  name: string;
  /** Number of servers, if known. */
  servers?: number | null;
  instances: number;
  onClose: () => void;
}) {
  const t = useText();
  const { disable } = useJobActions(name);
  return (
    <ConfirmDialog
      title={t.job.disableTitle(name)}
      consequences={t.job.disableConsequences(servers, instances)}
      button={t.job.disable}
      isBusy={disable.isPending}
      isDangerous={false}
      onConfirm={() => disable.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
