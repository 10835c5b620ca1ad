import { ActionIcon, Button, Menu } from "@mantine/core";
import { useState } from "react";

import type { JobDetails } from "../../api/types";
import { useHasRole } from "../../app/registry";
import { Icon } from "../../components/Icon";
import { RequireRole } from "../../components/RequireRole";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";
import { CancelDialog } from "./CancelDialog";
import { DisableDialog } from "./DisableDialog";
import { DumpDialog } from "./DumpDialog";
import { RemoveDialog } from "./RemoveDialog";
import { ShutDownDialog } from "./ShutDownDialog";
import { TriggerDialog } from "./TriggerDialog";

type OpenDialog = "trigger" | "cancel" | "disable" | "shutdown" | "remove" | "dump" | null;

export function JobActions({ job }: { job: JobDetails }) {
  const t = useText();
  const actions = useJobActions(job.jobName);
  const isAdmin = useHasRole("admin");
  const isOperator = useHasRole("operator");
  const [open, setOpen] = useState<OpenDialog>(null);
  const close = () => setOpen(null);
  const isDisabled = job.status === "DISABLED" || job.config.properties?.disabled === true;
  return (
    <>
      <RequireRole minimum="operator">
        {(isRefused) => (
          <Button
            leftSection={<Icon name="play" />}
            disabled={isRefused}
            onClick={() => setOpen("trigger")}
          >
            {t.job.trigger}
          </Button>
        )}
      </RequireRole>
      <RequireRole minimum="operator">
        {(isRefused) =>
          isDisabled ? (
            <Button
              variant="default"
              leftSection={<Icon name="check" />}
              disabled={isRefused}
              loading={actions.enable.isPending}
              onClick={() => actions.enable.mutate()}
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
      </RequireRole>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon variant="default" size="lg" aria-label={t.job.more}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Icon name="stop" />}
            disabled={!isOperator}
            onClick={() => setOpen("cancel")}
          >
            {t.job.cancel}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="power" />}
            disabled={!isOperator}
            onClick={() => setOpen("shutdown")}
          >
            {t.job.shutdown}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="copy" />}
            disabled={!isAdmin}
            onClick={() => setOpen("dump")}
          >
            {t.job.dump}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item
            leftSection={<Icon name="trash" />}
            disabled={!isAdmin}
            c={isAdmin ? "var(--bad)" : undefined}
            onClick={() => setOpen("remove")}
          >
            {t.job.remove}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {open === "trigger" && <TriggerDialog job={job} onClose={close} />}
      {open === "cancel" && <CancelDialog job={job.jobName} request={{}} onClose={close} />}
      {open === "disable" && (
        <DisableDialog
          name={job.jobName}
          servers={job.servers.length}
          instances={job.instanceCount}
          onClose={close}
        />
      )}
      {open === "shutdown" && <ShutDownDialog job={job} onClose={close} />}
      {open === "remove" && <RemoveDialog job={job} onClose={close} />}
      {open === "dump" && <DumpDialog job={job.jobName} onClose={close} />}
    </>
  );
}
