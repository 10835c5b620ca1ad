import { useParams } from "react-router";

import { Missing } from "../../app/Missing";
import { useText } from "../../i18n";
import { LinkTabs } from "../../parts/LinkTabs";
import { Histories } from "./Histories";
import { Registries } from "./Registries";

/** Where the console looks: registries, and what is kept of each. */
export function RegistriesPage() {
  const t = useText();
  const { tab = "registries" } = useParams();
  const tabs = [
    { value: "registries", label: t.nav.registries, to: "/registries" },
    { value: "histories", label: t.histories.title, to: "/registries/histories" },
  ];
  if (!tabs.some(({ value }) => value === tab)) return <Missing />;
  return (
    <LinkTabs label={t.histories.places} value={tab} tabs={tabs}>
      {tab === "registries" ? <Registries /> : <Histories />}
    </LinkTabs>
  );
}
