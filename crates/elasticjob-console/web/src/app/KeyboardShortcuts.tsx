import { Button } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import { useMatch, useNavigate } from "react-router";

import { Icon } from "../components/Icon";
import { useText } from "../i18n";
import { CommandPalette } from "./CommandPalette";
import { lastRegistry } from "./lastRegistry";
import { navItems } from "./navItems";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { isAdmin, useSession } from "./session";

/** Keyboard shortcuts of every page: search, help, and g followed by a letter to open a page. */
export function KeyboardShortcuts() {
  const t = useText();
  const session = useSession();
  const navigate = useNavigate();
  const match = useMatch("/r/:registry/*");
  const registry = match?.params.registry ?? lastRegistry.get() ?? "";
  const [isPaletteOpen, palette] = useDisclosure();
  const [isHelpOpen, help] = useDisclosure();
  const items = navItems(t, registry, isAdmin(session));

  useHotkeys([
    ["mod+K", palette.open],
    ["/", () => focusSearch() || palette.open()],
    ["shift+?", help.open],
    ["?", help.open],
  ]);
  useGoSequence((key) => {
    const item = items.find((each) => each.key === key);
    if (item) void navigate(item.to);
  });

  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        c="var(--mantine-color-text)"
        size="compact-sm"
        onClick={palette.open}
        leftSection={<Icon name="search" />}
        rightSection={
          // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a kbd cannot be focused.
          <kbd className="key" aria-hidden="true">
            /
          </kbd>
        }
        visibleFrom="sm"
      >
        {t.palette.open}
      </Button>
      <Button
        variant="subtle"
        color="gray"
        c="var(--mantine-color-text)"
        size="compact-sm"
        px={6}
        onClick={palette.open}
        aria-label={t.palette.open}
        hiddenFrom="sm"
      >
        <Icon name="search" />
      </Button>
      {isPaletteOpen && (
        <CommandPalette registry={registry} items={items} onClose={palette.close} />
      )}
      {isHelpOpen && <ShortcutsDialog items={items} onClose={help.close} />}
    </>
  );
}

/** Focuses the page's search field, if it has one. */
function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>("input[data-search]");
  field?.focus();
  field?.select();
  return field !== null;
}

function useGoSequence(go: (key: string) => void) {
  const latest = useRef(go);
  latest.current = go;
  useEffect(() => {
    let since = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.closest("input, textarea, select, [contenteditable], [role=dialog]");
      if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === "g") {
        since = event.timeStamp;
      } else if (event.timeStamp - since < 1_200 && since > 0) {
        since = 0;
        latest.current(event.key);
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}
