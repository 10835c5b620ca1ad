import { ActionIcon, Tooltip } from "@mantine/core";

import { Icon } from "../components/Icon";
import { useSchemeToggle } from "./scheme";

export function SchemeSwitch() {
  const { label, icon, toggle } = useSchemeToggle();
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        c="var(--mantine-color-text)"
        aria-label={label}
        onClick={toggle}
      >
        <Icon name={icon} />
      </ActionIcon>
    </Tooltip>
  );
}
