import { useComputedColorScheme, useMantineColorScheme } from "@mantine/core";

import type { IconName } from "../components/Icon";
import { useText } from "../i18n";

/** Switches between the light and the dark scheme; `label` and `icon` are those of the other scheme. */
export function useSchemeToggle() {
  const t = useText();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  const icon: IconName = isDark ? "sun" : "moon";
  return {
    icon,
    label: isDark ? t.toLight : t.toDark,
    toggle: () => setColorScheme(isDark ? "light" : "dark"),
  };
}
