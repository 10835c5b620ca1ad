import { ActionIcon, Tooltip } from "@mantine/core";

import { Icon } from "../parts/Icon";
import { useOtherScheme } from "./scheme";

export function SchemeSwitch() {
  const { label, icon, choose } = useOtherScheme();
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        c="var(--mantine-color-text)"
        aria-label={label}
        onClick={choose}
      >
        <Icon name={icon} />
      </ActionIcon>
    </Tooltip>
  );
}
