import { ActionIcon, Menu } from "@mantine/core";
import { useState } from "react";

import { useMay } from "../../app/registry";
import { useText } from "../../i18n";
import { Icon } from "../../parts/Icon";
import { useServerActs, type ServerAct } from "./acts";
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
      <Menu position="bottom-end" width={200}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            c="dimmed"
            aria-label={t.servers.actionsOf(job ?? server)}
          >
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            disabled={!maySteer}
            leftSection={<Icon name="check" />}
            onClick={() => acts.enable.mutate({ job })}
          >
            {t.servers.acts.enable}
          </Menu.Item>
          <Menu.Item
            disabled={!maySteer}
            leftSection={<Icon name="pause" />}
            onClick={() => setAsks("disable")}
          >
            {t.servers.acts.disable}
          </Menu.Item>
          <Menu.Item
            disabled={!maySteer}
            leftSection={<Icon name="power" />}
            onClick={() => setAsks("shutdown")}
          >
            {t.servers.acts.shutdown}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item
            disabled={!mayRule || instances > 0}
            leftSection={<Icon name="trash" />}
            onClick={() => setAsks("remove")}
          >
            {instances > 0 ? t.servers.removeLater : t.servers.acts.remove}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
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
