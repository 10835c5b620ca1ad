import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";
import { useNavigate } from "react-router";

/** Tabs of a page, each with its own URL. */
export function LinkTabs({
  label,
  value,
  tabs,
  children,
}: {
  label: string;
  value: string;
  tabs: { value: string; label: string; to: string }[];
  /** Content of the open tab. */
  children: ReactNode;
}) {
  const navigate = useNavigate();
  return (
    <Tabs
      value={value}
      onChange={(next) => {
        const tab = tabs.find((each) => each.value === next);
        if (tab) void navigate(tab.to);
      }}
      keepMounted={false}
      // Arrow keys only move the focus; a tab loads its data when it is activated.
      activateTabWithKeyboard={false}
    >
      <Tabs.List mb="md" aria-label={label}>
        {tabs.map((tab) => (
          <Tabs.Tab key={tab.value} value={tab.value}>
            {tab.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={value}>{children}</Tabs.Panel>
    </Tabs>
  );
}
