import { Text } from "@mantine/core";
import { Link } from "react-router";

import { keys, useRegistries } from "../../api/queries";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { AddRegistry } from "./AddRegistry";
import { Places } from "./Places";
import { RegistryState } from "./RegistryState";

export function RegistriesPage() {
  const t = useText();
  const session = useSession();
  return (
    <Places
      tab="registries"
      title={t.nav.registries}
      words={t.registries}
      asked={useRegistries()}
      nameOf={(each) => each.name}
      touches={() => [keys.registries]}
      mayAdd={rules(session) && session.canAddRegistries}
      adding={(close) => <AddRegistry onClose={close} />}
      width={640}
      columns={[
        {
          head: t.registries.name,
          cell: (each) => (
            <Link className="name" to={`/r/${encodeURIComponent(each.name)}`}>
              {each.name}
            </Link>
          ),
        },
        {
          head: t.registries.state,
          cell: (each) => (
            <>
              <RegistryState state={each.state} />
              {each.problem && (
                <Text size="xs" c="var(--bad)" className="wrap">
                  {each.problem}
                </Text>
              )}
            </>
          ),
        },
        {
          head: t.registries.url,
          isWide: true,
          className: "mono wrap",
          cell: (each) => each.url,
        },
        { head: t.registries.jobs, className: "numeric", cell: (each) => each.jobCount ?? "–" },
        { head: t.registries.role, cell: (each) => t.roles[each.role] },
      ]}
    />
  );
}
