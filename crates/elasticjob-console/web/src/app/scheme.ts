import { useComputedColorScheme, useMantineColorScheme } from "@mantine/core";

import { useText } from "../i18n";
import type { IconName } from "../parts/Icon";

/** The other of light and dark: what it is called, and how to get there. */
export function useOtherScheme() {
  const t = useText();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  const icon: IconName = isDark ? "sun" : "moon";
  return {
    icon,
    label: isDark ? t.toLight : t.toDark,
    choose: () => setColorScheme(isDark ? "light" : "dark"),
  };
}
