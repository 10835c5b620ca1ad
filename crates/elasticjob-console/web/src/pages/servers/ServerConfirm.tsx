import { useText } from "../../i18n";
import { Confirm } from "../../parts/Confirm";
import { type ServerAct, useServerActs } from "./acts";

/** Asks before a server, or a job on it, is switched. */
export function ServerConfirm({
  server,
  job,
  jobs,
  instances,
  act,
  onDone,
  onClose,
}: {
  server: string;
  job?: string;
  jobs: number;
  instances: number;
  act: Exclude<ServerAct, "enable">;
  onDone?: () => void;
  onClose: () => void;
}) {
  const t = useText();
  const acts = useServerActs(server);
  const mutation = acts[act];
  const what = job ? t.servers.jobOn(job, server) : server;
  return (
    <Confirm
      title={t.servers.titles[act](what)}
      happens={t.servers.happens[act](job ? 1 : jobs, instances)}
      warning={act === "shutdown" ? t.job.shutdownWarning : undefined}
      button={t.servers.acts[act]}
      isBusy={mutation.isPending}
      isDangerous={act !== "disable"}
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
