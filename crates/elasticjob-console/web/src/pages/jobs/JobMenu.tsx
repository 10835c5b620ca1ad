import { ActionIcon, type ActionIconProps, Menu } from "@mantine/core";
import { type ComponentPropsWithRef, useEffect, useRef, useState } from "react";

import type { JobRow } from "../../api/types";
import { useHasRole } from "../../app/registry";
import { Icon } from "../../components/Icon";
import { useText } from "../../i18n";
import { useJobActions } from "../job/actions";
import { DisableDialog } from "../job/DisableDialog";

/** Frequent actions in a row of the list. The menu is mounted on the first click, because most rows are never used. */
export function JobMenu({ row }: { row: JobRow }) {
  const t = useText();
  const [isOpened, setOpened] = useState(false);
  if (isOpened) return <OpenedMenu row={row} />;
  return (
    <Dots
      aria-label={t.jobs.actionsOf(row.jobName)}
      aria-haspopup="menu"
      aria-expanded={false}
      onClick={() => setOpened(true)}
    />
  );
}

function Dots(props: ActionIconProps & ComponentPropsWithRef<"button">) {
  return (
    <ActionIcon variant="subtle" color="gray" c="dimmed" {...props}>
      <Icon name="dots" />
    </ActionIcon>
  );
}

function OpenedMenu({ row }: { row: JobRow }) {
  const t = useText();
  const isAllowed = useHasRole("operator");
  const actions = useJobActions(row.jobName);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  // The menu replaces the clicked button, so it takes the focus; closing returns the focus to it.
  useEffect(() => {
    button.current?.focus();
    setOpen(true);
  }, []);
  return (
    <>
      <Menu position="bottom-end" width={190} opened={isOpen} onChange={setOpen}>
        <Menu.Target>
          <Dots ref={button} aria-label={t.jobs.actionsOf(row.jobName)} />
        </Menu.Target>
        <Menu.Dropdown>
          {!isAllowed && <Menu.Label>{t.needsRole(t.roles.operator)}</Menu.Label>}
          <Menu.Item
            disabled={!isAllowed}
            leftSection={<Icon name="play" />}
            onClick={() => actions.trigger.mutate({})}
          >
            {t.job.trigger}
          </Menu.Item>
          {row.status === "DISABLED" || row.disabled ? (
            <Menu.Item
              disabled={!isAllowed}
              leftSection={<Icon name="check" />}
              onClick={() => actions.enable.mutate()}
            >
              {t.job.enable}
            </Menu.Item>
          ) : (
            <Menu.Item
              disabled={!isAllowed}
              leftSection={<Icon name="pause" />}
              onClick={() => setConfirming(true)}
            >
              {t.job.disable}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {isConfirming && (
        <DisableDialog
          name={row.jobName}
          instances={row.instanceCount}
          onClose={() => setConfirming(false)}
        />
      )}
    </>
  );
}
