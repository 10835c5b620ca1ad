import { ActionIcon, Menu } from "@mantine/core";

import { Icon, type IconName } from "./Icon";

export interface RowAction {
  label: string;
  icon: IconName;
  isDisabled?: boolean;
  /** Set off from the others by a divider. */
  isSeparated?: boolean;
  onClick: () => void;
}

/** Menu with the actions for a table row. */
export function RowMenu({
  label,
  actions,
  note,
}: {
  label: string;
  actions: RowAction[];
  note?: string;
}) {
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" c="dimmed" aria-label={label}>
          <Icon name="dots" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {note && <Menu.Label>{note}</Menu.Label>}
        {actions.map((act) => [
          act.isSeparated && <Menu.Divider key={`${act.label} divider`} />,
          <Menu.Item
            key={act.label}
            disabled={act.isDisabled}
            leftSection={<Icon name={act.icon} />}
            onClick={act.onClick}
          >
            {act.label}
          </Menu.Item>,
        ])}
      </Menu.Dropdown>
    </Menu>
  );
}

export function RemoveButton({
  label,
  isRefused = false,
  onClick,
}: {
  label: string;
  isRefused?: boolean;
  onClick: () => void;
}) {
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      c="dimmed"
      disabled={isRefused}
      aria-label={label}
      onClick={onClick}
    >
      <Icon name="trash" />
    </ActionIcon>
  );
}
