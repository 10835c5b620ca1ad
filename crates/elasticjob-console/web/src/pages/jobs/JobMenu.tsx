import { ActionIcon, type ActionIconProps, Menu } from "@mantine/core";
import { type ComponentPropsWithRef, useEffect, useRef, useState } from "react";

import type { JobRow } from "../../api/types";
import { useMay } from "../../app/registry";
import { useText } from "../../i18n";
import { Icon } from "../../parts/Icon";
import { useJobActs } from "../job/acts";
import { Disable } from "../job/Disable";

/** What is done most, without leaving the list. It is there once somebody wants it: most rows are only looked at. */
export function JobMenu({ row }: { row: JobRow }) {
  const t = useText();
  const [isWanted, setWanted] = useState(false);
  if (isWanted) return <Wanted row={row} />;
  return (
    <Dots
      aria-label={t.jobs.actionsOf(row.jobName)}
      aria-haspopup="menu"
      aria-expanded={false}
      onClick={() => setWanted(true)}
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

function Wanted({ row }: { row: JobRow }) {
  const t = useText();
  const may = useMay("operator");
  const acts = useJobActs(row.jobName);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [isAsked, setAsked] = useState(false);
  // It stands where the button was that was pressed, and gives the focus back when it closes.
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
          {!may && <Menu.Label>{t.needsRole(t.roles.operator)}</Menu.Label>}
          <Menu.Item
            disabled={!may}
            leftSection={<Icon name="play" />}
            onClick={() => acts.trigger.mutate({})}
          >
            {t.job.trigger}
          </Menu.Item>
          {row.status === "DISABLED" || row.disabled ? (
            <Menu.Item
              disabled={!may}
              leftSection={<Icon name="check" />}
              onClick={() => acts.enable.mutate()}
            >
              {t.job.enable}
            </Menu.Item>
          ) : (
            <Menu.Item
              disabled={!may}
              leftSection={<Icon name="pause" />}
              onClick={() => setAsked(true)}
            >
              {t.job.disable}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {isAsked && (
        <Disable name={row.jobName} instances={row.instanceCount} onClose={() => setAsked(false)} />
      )}
    </>
  );
}
