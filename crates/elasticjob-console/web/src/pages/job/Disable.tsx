import { useText } from "../../i18n";
import { Confirm } from "../../parts/Confirm";
import { useJobActs } from "./acts";

export function Disable({
  name,
  servers = null,
  instances,
  onClose,
}: {
  name: string;
  /** On how many it is switched off, where that is known. */
  servers?: number | null;
  instances: number;
  onClose: () => void;
}) {
  const t = useText();
  const { disable } = useJobActs(name);
  return (
    <Confirm
      title={t.job.disableTitle(name)}
      happens={t.job.disableHappens(servers, instances)}
      button={t.job.disable}
      isBusy={disable.isPending}
      isDangerous={false}
      onConfirm={() => disable.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
