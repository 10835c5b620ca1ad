import { Divider, NavLink, Text } from "@mantine/core";
import { Link, useLocation, useMatch } from "react-router";

import { useRegistries } from "../api/queries";
import { useText } from "../i18n";
import { Icon } from "../parts/Icon";
import { lastRegistry } from "./lastRegistry";
import { type Place, places } from "./places";
import { rules, useSession } from "./session";

export function Navigation() {
  const t = useText();
  const session = useSession();
  const registries = useRegistries();
  const match = useMatch("/r/:registry/*");
  const registry = match?.params.registry ?? lastRegistry.get() ?? registries.data?.[0]?.name ?? "";
  const all = places(t, registry, rules(session));
  return (
    <>
      <Group of={all.filter((place) => place.isOfRegistry)} />
      <Divider my="xs" />
      <Text size="xs" c="dimmed" px="sm" pb={4}>
        {t.nav.console}
      </Text>
      <Group of={all.filter((place) => !place.isOfRegistry)} />
    </>
  );
}

function Group({ of }: { of: Place[] }) {
  const { pathname } = useLocation();
  return of.map((place) => {
    const isHere = place.isExact
      ? pathname.replace(/\/$/, "") === place.to
      : pathname.startsWith(place.to);
    return (
      <NavLink
        key={place.to}
        component={Link}
        to={place.to}
        label={place.label}
        leftSection={<Icon name={place.icon} />}
        active={isHere}
        aria-current={isHere ? "page" : undefined}
        variant="light"
        style={{ borderRadius: "var(--mantine-radius-md)" }}
      />
    );
  });
}
