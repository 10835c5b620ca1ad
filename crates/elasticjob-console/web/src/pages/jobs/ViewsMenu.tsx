import { ActionIcon, Button, Group, Menu, Modal, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useNavigate, useSearchParams } from "react-router";

import { useRegistry } from "../../app/registry";
import { Icon } from "../../components/Icon";
import { useText } from "../../i18n";
import { loadViews, putView, type SavedView, saveViews } from "./savedViews";

/** Menu to open, save and remove named searches. */
export function ViewsMenu() {
  const t = useText();
  const registry = useRegistry();
  const navigate = useNavigate();
  const [params] = useSearchParams();
  const [views, setViews] = useState(() => loadViews(registry));
  const [name, setName] = useState<string | null>(null);
  const store = (next: SavedView[]) => {
    setViews(next);
    saveViews(registry, next);
  };
  const current = new URLSearchParams([...params].filter(([key]) => key !== "page")).toString();
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <Button
            variant="subtle"
            color="gray"
            c="var(--mantine-color-text)"
            size="compact-sm"
            ml="auto"
            style={{ flex: "none" }}
            rightSection={<Icon name="down" size={13} />}
          >
            {t.views.title}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length === 0 && <Menu.Label>{t.views.none}</Menu.Label>}
          {views.map((view) => (
            <Group key={view.name} gap={4} wrap="nowrap">
              <Menu.Item onClick={() => void navigate({ search: view.params })}>
                {view.name}
              </Menu.Item>
              <ActionIcon
                variant="subtle"
                color="gray"
                c="dimmed"
                role="menuitem"
                aria-label={t.views.remove(view.name)}
                onClick={() => store(views.filter((each) => each.name !== view.name))}
              >
                <Icon name="close" size={13} />
              </ActionIcon>
            </Group>
          ))}
          <Menu.Divider />
          <Menu.Item
            leftSection={<Icon name="plus" size={14} />}
            disabled={current === ""}
            onClick={() => setName("")}
          >
            {t.views.save}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {name !== null && (
        <Modal
          opened
          onClose={() => setName(null)}
          title={t.views.save}
          closeButtonProps={{ "aria-label": t.close }}
        >
          <form
            onSubmit={(event) => {
              event.preventDefault();
              store(putView(views, { name: name.trim(), params: current }));
              setName(null);
            }}
          >
            <Stack gap="sm">
              <TextInput
                label={t.views.name}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
                data-autofocus
              />
              <Group justify="flex-end">
                <Button type="submit" disabled={name.trim() === ""}>
                  {t.save}
                </Button>
              </Group>
            </Stack>
          </form>
        </Modal>
      )}
    </>
  );
}
