import { Button, Menu, Text } from "@mantine/core";
import { Link } from "react-router";

import { useAct } from "../api/act";
import { useText } from "../i18n";
import { Icon } from "../parts/Icon";
import { useOtherScheme } from "./scheme";
import { useDoor, useSession } from "./session";

export function UserMenu() {
  const t = useText();
  const session = useSession();
  const leave = useAct({ run: useDoor().leave });
  const other = useOtherScheme();
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
        <Menu.Item leftSection={<Icon name={other.icon} />} onClick={other.choose}>
          {other.label}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="out" />} onClick={() => leave.mutate()}>
          {t.logOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
