import { AppShell, Box, Burger, Center, Group, Loader } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Notifications } from "@mantine/notifications";
import { useEffect } from "react";
import { Outlet, useLocation } from "react-router";

import { useText } from "../i18n";
import { LoginPage } from "../pages/login/LoginPage";
import { Brand } from "./Brand";
import { KeyboardShortcuts } from "./KeyboardShortcuts";
import { LanguageSwitch } from "./LanguageSwitch";
import { Navigation } from "./Navigation";
import { RegistrySwitch } from "./RegistrySwitch";
import { SchemeSwitch } from "./SchemeSwitch";
import { useSessionControl } from "./session";
import { UserMenu } from "./UserMenu";

/** The frame of every page, and the notifications, whose links need the router. */
export function Shell() {
  return (
    <>
      <Notifications position="top-center" limit={4} />
      <SessionGate />
    </>
  );
}

/** The page; without a session, the login form. */
function SessionGate() {
  const { state } = useSessionControl();
  if (state.status === "unknown") {
    return (
      <Center h="100vh">
        <Loader aria-label="…" />
      </Center>
    );
  }
  return state.status === "loggedIn" ? <Frame /> : <LoginPage />;
}

function Frame() {
  const t = useText();
  const [isOpen, { toggle, close }] = useDisclosure();
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigating to another page closes the menu.
  useEffect(close, [pathname, close]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding={{ base: "sm", sm: "lg" }}
    >
      <a className="skip" href="#content">
        {t.skip}
      </a>
      <AppShell.Header style={{ background: "var(--card)" }}>
        <Group h="100%" px="sm" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs" wrap="nowrap" miw={0}>
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t.nav.menu}
              aria-expanded={isOpen}
            />
            <Brand />
            <RegistrySwitch />
          </Group>
          <Group gap={4} wrap="nowrap">
            <KeyboardShortcuts />
            <LanguageSwitch />
            <Box visibleFrom="xs">
              <SchemeSwitch />
            </Box>
            <UserMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" style={{ background: "var(--card)" }} aria-label={t.nav.menu}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Box maw={1440} mx="auto">
          <Outlet />
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}
