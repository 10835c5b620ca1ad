import { useState } from "react";

import { useHasRole } from "../../app/registry";
import { RowMenu } from "../../components/RowMenu";
import { useText } from "../../i18n";
import { type ServerAction, useServerActions } from "./actions";
import { ServerActionDialog } from "./ServerActionDialog";

/** Menu with the actions for a server, or for one job on it. */
export function ServerMenu({
  server,
  job,
  jobs,
  instances,
  onRemoved,
}: {
  server: string;
  job?: string;
  jobs: number;
  instances: number;
  onRemoved?: () => void;
}) {
  const t = useText();
  const isOperator = useHasRole("operator");
  const isAdmin = useHasRole("admin");
  const actions = useServerActions(server);
  const [confirming, setConfirming] = useState<Exclude<ServerAction, "enable"> | null>(null);
  return (
    <>
      <RowMenu
        label={t.servers.actionsOf(job ?? server)}
        actions={[
          {
            label: t.servers.actions.enable,
            icon: "check",
            isDisabled: !isOperator,
            onClick: () => actions.enable.mutate({ job }),
          },
          {
            label: t.servers.actions.disable,
            icon: "pause",
            isDisabled: !isOperator,
            onClick: () => setConfirming("disable"),
          },
          {
            label: t.servers.actions.shutdown,
            icon: "power",
            isDisabled: !isOperator,
            onClick: () => setConfirming("shutdown"),
          },
          {
            label: instances > 0 ? t.servers.removeWhenEmpty : t.servers.actions.remove,
            icon: "trash",
            isSeparated: true,
            isDisabled: !isAdmin || instances > 0,
            onClick: () => setConfirming("remove"),
          },
        ]}
      />
      {confirming && (
        <ServerActionDialog
          server={server}
          job={job}
          jobs={jobs}
          instances={instances}
          action={confirming}
          onDone={confirming === "remove" ? onRemoved : undefined}
          onClose={() => setConfirming(null)}
        />
      )}
    </>
  );
}
