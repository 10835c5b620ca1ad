import { ActionIcon, Menu } from "@mantine/core";

import type { JobRow } from "../../api/types";
import { useMay } from "../../app/registry";
import { useText } from "../../i18n";
import { Icon } from "../../parts/Icon";
import { useJobActs } from "../job/acts";

/** What is done most, without leaving the list. */
export function JobMenu({ row }: { row: JobRow }) {
  const t = useText();
  const may = useMay("operator");
  const acts = useJobActs(row.jobName);
  return (
    <Menu position="bottom-end" width={190}>
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          c="dimmed"
          aria-label={t.jobs.actionsOf(row.jobName)}
        >
          <Icon name="dots" />
        </ActionIcon>
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
            onClick={() => acts.disable.mutate()}
          >
            {t.job.disable}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
