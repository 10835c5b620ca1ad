import type { Messages } from "../i18n/en";
import type { IconName } from "../parts/Icon";

export interface Place {
  to: string;
  label: string;
  icon: IconName;
  isOfRegistry: boolean;
  isExact?: boolean;
  /** The second key after g. */
  key?: string;
}

/** Where one can go; the menu, the palette and the keys all read this. */
export function places(t: Messages, registry: string, isRuler: boolean): Place[] {
  const base = `/r/${encodeURIComponent(registry)}`;
  const here: Place[] = registry
    ? [
        {
          to: base,
          label: t.nav.overview,
          icon: "home",
          isOfRegistry: true,
          isExact: true,
          key: "o",
        },
        { to: `${base}/jobs`, label: t.nav.jobs, icon: "jobs", isOfRegistry: true, key: "j" },
        { to: `${base}/runs`, label: t.nav.runs, icon: "play", isOfRegistry: true, key: "u" },
        {
          to: `${base}/history`,
          label: t.history.title,
          icon: "history",
          isOfRegistry: true,
          key: "y",
        },
        {
          to: `${base}/servers`,
          label: t.nav.servers,
          icon: "server",
          isOfRegistry: true,
          key: "s",
        },
        {
          to: `${base}/instances`,
          label: t.nav.instances,
          icon: "instance",
          isOfRegistry: true,
          key: "i",
        },
        { to: `${base}/doctor`, label: t.nav.doctor, icon: "doctor", isOfRegistry: true, key: "d" },
      ]
    : [];
  const console: Place[] = [
    { to: "/registries", label: t.nav.registries, icon: "registry", isOfRegistry: false, key: "r" },
    { to: "/audit", label: t.nav.audit, icon: "audit", isOfRegistry: false, key: "a" },
    { to: "/help", label: t.nav.help, icon: "help", isOfRegistry: false, key: "h" },
  ];
  if (isRuler) {
    console.splice(2, 0, {
      to: "/accounts",
      label: t.nav.accounts,
      icon: "people",
      isOfRegistry: false,
      key: "p",
    });
  }
  return [...here, ...console];
}
