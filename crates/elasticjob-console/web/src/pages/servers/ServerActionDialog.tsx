import { ConfirmDialog } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";
import { type ServerAction, useServerActions } from "./actions";

/** Confirms an action for a server, or for one job on it. */
export function ServerActionDialog({
  server,
  job,
  jobs,
  instances,
  action,
  onDone,
  onClose,
}: {
  server: string;
  job?: string;
  jobs: number;
  instances: number;
  action: Exclude<ServerAction, "enable">;
  onDone?: () => void;
  onClose: () => void;
}) {
  const t = useText();
  const actions = useServerActions(server);
  const mutation = actions[action];
  const target = job ? t.servers.jobOn(job, server) : server;
  return (
    <ConfirmDialog
      title={t.servers.titles[action](target)}
      consequences={t.servers.consequences[action](job ? 1 : jobs, instances)}
      warning={action === "shutdown" ? t.job.shutdownWarning : undefined}
      button={t.servers.actions[action]}
      isBusy={mutation.isPending}
      isDangerous={action !== "disable"}
      onConfirm={() =>
        mutation.mutate(
          { job },
          {
            onSuccess: () => {
              onClose();
              onDone?.();
            },
          },
        )
      }
      onClose={onClose}
    />
  );
}
