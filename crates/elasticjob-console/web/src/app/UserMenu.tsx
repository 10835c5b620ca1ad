import { Button, Menu, Text } from "@mantine/core";
import { Link } from "react-router";

import { useAction } from "../api/action";
import { Icon } from "../components/Icon";
import { useText } from "../i18n";
import { useSchemeToggle } from "./scheme";
import { useSession, useSessionControl } from "./session";

export function UserMenu() {
  const t = useText();
  const session = useSession();
  const logOut = useAction({ send: useSessionControl().logOut });
  const schemeToggle = useSchemeToggle();
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          c="var(--mantine-color-text)"
          size="compact-sm"
          leftSection={<Icon name="user" />}
          aria-label={t.nav.userMenu(session.username)}
        >
          <Text span size="sm" visibleFrom="xs">
            {session.username}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label c="dimmed">
          {session.username} · {t.version} {session.version}
        </Menu.Label>
        <Menu.Item component={Link} to="/account" leftSection={<Icon name="key" />}>
          {t.nav.account}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name={schemeToggle.icon} />} onClick={schemeToggle.toggle}>
          {schemeToggle.label}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="out" />} onClick={() => logOut.mutate()}>
          {t.logOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
