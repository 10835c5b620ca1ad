import { useState } from "react";

import { useMay } from "../../app/registry";
import { useText } from "../../i18n";
import { RowMenu } from "../../parts/RowMenu";
import { type ServerAct, useServerActs } from "./acts";
import { ServerConfirm } from "./ServerConfirm";

/** What can be done to a server; with a job, to that job there. */
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
  const maySteer = useMay("operator");
  const mayRule = useMay("admin");
  const acts = useServerActs(server);
  const [asks, setAsks] = useState<Exclude<ServerAct, "enable"> | null>(null);
  return (
    <>
      <RowMenu
        label={t.servers.actionsOf(job ?? server)}
        acts={[
          {
            label: t.servers.acts.enable,
            icon: "check",
            isRefused: !maySteer,
            onClick: () => acts.enable.mutate({ job }),
          },
          {
            label: t.servers.acts.disable,
            icon: "pause",
            isRefused: !maySteer,
            onClick: () => setAsks("disable"),
          },
          {
            label: t.servers.acts.shutdown,
            icon: "power",
            isRefused: !maySteer,
            onClick: () => setAsks("shutdown"),
          },
          {
            label: instances > 0 ? t.servers.removeLater : t.servers.acts.remove,
            icon: "trash",
            isApart: true,
            isRefused: !mayRule || instances > 0,
            onClick: () => setAsks("remove"),
          },
        ]}
      />
      {asks && (
        <ServerConfirm
          server={server}
          job={job}
          jobs={jobs}
          instances={instances}
          act={asks}
          onDone={asks === "remove" ? onRemoved : undefined}
          onClose={() => setAsks(null)}
        />
      )}
    </>
  );
}
