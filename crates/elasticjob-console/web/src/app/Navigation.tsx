import { Divider, NavLink, Text } from "@mantine/core";
import { Link, useLocation, useMatch } from "react-router";

import { useRegistries } from "../api/queries";
import { Icon } from "../components/Icon";
import { viewerZone } from "../components/time";
import { useText } from "../i18n";
import { lastRegistry } from "./lastRegistry";
import { type NavItem, navItems } from "./navItems";
import { isAdmin, useSession } from "./session";

export function Navigation() {
  const t = useText();
  const session = useSession();
  const registries = useRegistries();
  const match = useMatch("/r/:registry/*");
  const registry = match?.params.registry ?? lastRegistry.get() ?? registries.data?.[0]?.name ?? "";
  const navigation = navItems(t, registry, isAdmin(session));
  return (
    <>
      <NavGroup items={navigation.filter((item) => item.needsRegistry)} />
      <Divider my="xs" />
      <Text size="xs" c="dimmed" px="sm" pb={4}>
        {t.nav.console}
      </Text>
      <NavGroup items={navigation.filter((item) => !item.needsRegistry)} />
      <Text size="xs" c="dimmed" px="sm" pt="sm" className="wrap">
        {t.time.shownIn(viewerZone())}
      </Text>
    </>
  );
}

function NavGroup({ items }: { items: NavItem[] }) {
  const { pathname } = useLocation();
  return items.map((item) => {
    const isActive = item.isExact
      ? pathname.replace(/\/$/, "") === item.to
      : pathname.startsWith(item.to);
    return (
      <NavLink
        key={item.to}
        component={Link}
        to={item.to}
        label={item.label}
        leftSection={<Icon name={item.icon} />}
        active={isActive}
        aria-current={isActive ? "page" : undefined}
        variant="light"
        style={{ borderRadius: "var(--mantine-radius-md)" }}
      />
    );
  });
}
