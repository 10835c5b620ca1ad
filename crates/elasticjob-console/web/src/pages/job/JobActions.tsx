import { ActionIcon, Button, Menu } from "@mantine/core";
import { useState } from "react";

import type { JobDetails } from "../../api/types";
import { useMay } from "../../app/registry";
import { useText } from "../../i18n";
import { Allowed } from "../../parts/Allowed";
import { Icon } from "../../parts/Icon";
import { useJobActs } from "./acts";
import { Disable } from "./Disable";
import { Dump } from "./Dump";
import { Remove } from "./Remove";
import { ShutDown } from "./ShutDown";
import { Trigger } from "./Trigger";

type Open = "trigger" | "disable" | "shutdown" | "remove" | "dump" | null;

export function JobActions({ job }: { job: JobDetails }) {
  const t = useText();
  const acts = useJobActs(job.jobName);
  const mayRule = useMay("admin");
  const maySteer = useMay("operator");
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const isDisabled = job.status === "DISABLED" || job.config.properties?.disabled === true;
  return (
    <>
      <Allowed needs="operator">
        {(isRefused) => (
          <Button
            leftSection={<Icon name="play" />}
            disabled={isRefused}
            onClick={() => setOpen("trigger")}
          >
            {t.job.trigger}
          </Button>
        )}
      </Allowed>
      <Allowed needs="operator">
        {(isRefused) =>
          isDisabled ? (
            <Button
              variant="default"
              leftSection={<Icon name="check" />}
              disabled={isRefused}
              loading={acts.enable.isPending}
              onClick={() => acts.enable.mutate()}
            >
              {t.job.enable}
            </Button>
          ) : (
            <Button
              variant="default"
              leftSection={<Icon name="pause" />}
              disabled={isRefused}
              onClick={() => setOpen("disable")}
            >
              {t.job.disable}
            </Button>
          )
        }
      </Allowed>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon variant="default" size="lg" aria-label={t.job.more}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Icon name="stop" />}
            disabled={!maySteer}
            onClick={() => acts.cancel.mutate({})}
          >
            {t.job.cancel}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="power" />}
            disabled={!maySteer}
            onClick={() => setOpen("shutdown")}
          >
            {t.job.shutdown}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="copy" />}
            disabled={!mayRule}
            onClick={() => setOpen("dump")}
          >
            {t.job.dump}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item
            leftSection={<Icon name="trash" />}
            disabled={!mayRule}
            c={mayRule ? "var(--bad)" : undefined}
            onClick={() => setOpen("remove")}
          >
            {t.job.remove}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {open === "trigger" && <Trigger job={job} onClose={close} />}
      {open === "disable" && (
        <Disable
          name={job.jobName}
          servers={job.servers.length}
          instances={job.instanceCount}
          onClose={close}
        />
      )}
      {open === "shutdown" && <ShutDown job={job} onClose={close} />}
      {open === "remove" && <Remove job={job} onClose={close} />}
      {open === "dump" && <Dump job={job.jobName} onClose={close} />}
    </>
  );
}
