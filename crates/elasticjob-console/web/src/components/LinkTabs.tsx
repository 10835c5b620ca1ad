import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";
import { useNavigate } from "react-router";

/** Parts of a page, each with an address of its own. */
export function LinkTabs({
  label,
  value,
  tabs,
  children,
}: {
  label: string;
  value: string;
  tabs: { value: string; label: string; to: string }[];
  /** Of the one that is open. */
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
      // Keys lead along the tabs; what is behind one is fetched when it is chosen.
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
