import type { ReactNode } from "react";

import { LinkTabs } from "../../components/LinkTabs";
import { useText } from "../../i18n";

/** Tabs for registries and history stores. */
export function ConnectionTabs({
  tab,
  children,
}: {
  tab: "registries" | "histories";
  children: ReactNode;
}) {
  const t = useText();
  return (
    <LinkTabs
      label={t.histories.tabsLabel}
      value={tab}
      tabs={[
        { value: "registries", label: t.nav.registries, to: "/registries" },
        { value: "histories", label: t.histories.title, to: "/registries/histories" },
      ]}
    >
      {children}
    </LinkTabs>
  );
}
