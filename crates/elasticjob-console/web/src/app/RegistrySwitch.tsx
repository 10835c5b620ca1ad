import { Button, Group, Menu, Text } from "@mantine/core";
import { Link, useMatch } from "react-router";

import { useRegistries } from "../api/queries";
import { Icon } from "../components/Icon";
import { useText } from "../i18n";
import { RegistryState } from "../pages/registries/RegistryState";

/** Selects the registry. The choice is part of the URL, so each tab has its own. */
export function RegistrySwitch() {
  const t = useText();
  const match = useMatch("/r/:registry/*");
  const registries = useRegistries();
  const here = match?.params.registry;
  return (
    <Menu position="bottom-start" width={300}>
      <Menu.Target>
        <Button
          variant="default"
          size="compact-sm"
          rightSection={<Icon name="down" size={13} />}
          aria-label={t.registries.switch(here ?? "–")}
          maw={180}
        >
          <Text span size="sm" truncate>
            {here ?? t.registries.choose}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {registries.data?.map((each) => (
          <Menu.Item key={each.name} component={Link} to={`/r/${encodeURIComponent(each.name)}`}>
            <Group justify="space-between" wrap="nowrap">
              <Text span size="sm" fw={each.name === here ? 700 : 400}>
                {each.name}
              </Text>
              <RegistryState state={each.state} />
            </Group>
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component={Link} to="/registries" leftSection={<Icon name="registry" />}>
          {t.nav.registries}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
