import type { IconName } from "../components/Icon";
import type { Messages } from "../i18n/en";

export interface NavItem {
  to: string;
  label: string;
  icon: IconName;
  needsRegistry: boolean;
  isExact?: boolean;
  /** The key that follows g. */
  key?: string;
}

/** The pages in the navigation, the command palette and the keyboard shortcuts. */
export function navItems(t: Messages, registry: string, isAdmin: boolean): NavItem[] {
  const base = `/r/${encodeURIComponent(registry)}`;
  const registryItems: NavItem[] = registry
    ? [
        {
          to: base,
          label: t.nav.overview,
          icon: "home",
          needsRegistry: true,
          isExact: true,
          key: "o",
        },
        { to: `${base}/jobs`, label: t.nav.jobs, icon: "jobs", needsRegistry: true, key: "j" },
        { to: `${base}/runs`, label: t.nav.runs, icon: "play", needsRegistry: true, key: "u" },
        {
          to: `${base}/history`,
          label: t.history.title,
          icon: "history",
          needsRegistry: true,
          key: "y",
        },
        {
          to: `${base}/servers`,
          label: t.nav.servers,
          icon: "server",
          needsRegistry: true,
          key: "s",
        },
        {
          to: `${base}/instances`,
          label: t.nav.instances,
          icon: "instance",
          needsRegistry: true,
          key: "i",
        },
        {
          to: `${base}/doctor`,
          label: t.nav.doctor,
          icon: "doctor",
          needsRegistry: true,
          key: "d",
        },
      ]
    : [];
  const consoleItems: NavItem[] = [
    {
      to: "/registries",
      label: t.nav.registries,
      icon: "registry",
      needsRegistry: false,
      key: "r",
    },
    { to: "/audit", label: t.nav.audit, icon: "audit", needsRegistry: false, key: "a" },
    { to: "/help", label: t.nav.help, icon: "help", needsRegistry: false, key: "h" },
  ];
  if (isAdmin) {
    consoleItems.splice(2, 0, {
      to: "/accounts",
      label: t.nav.accounts,
      icon: "people",
      needsRegistry: false,
      key: "p",
    });
  }
  return [...registryItems, ...consoleItems];
}
