import { ActionIcon, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";

import { useText } from "../i18n";
import { Icon } from "../parts/Icon";

export function SchemeSwitch() {
  const t = useText();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  const label = isDark ? t.toLight : t.toDark;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        c="var(--mantine-color-text)"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        <Icon name={isDark ? "sun" : "moon"} />
      </ActionIcon>
    </Tooltip>
  );
}
