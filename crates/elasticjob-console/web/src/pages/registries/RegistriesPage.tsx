import { Text } from "@mantine/core";
import { Link } from "react-router";

import { queryKeys, useRegistries } from "../../api/queries";
import { isAdmin, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { AddRegistryDialog } from "./AddRegistryDialog";
import { ConnectionList } from "./ConnectionList";
import { RegistryState } from "./RegistryState";

export function RegistriesPage() {
  const t = useText();
  const session = useSession();
  return (
    <ConnectionList
      tab="registries"
      title={t.nav.registries}
      texts={t.registries}
      query={useRegistries()}
      nameOf={(each) => each.name}
      invalidates={() => [queryKeys.registries]}
      canAdd={isAdmin(session) && session.canAddRegistries}
      addDialog={(close) => <AddRegistryDialog onClose={close} />}
      width={640}
      columns={[
        {
          header: t.registries.name,
          cell: (each) => (
            <Link className="name" to={`/r/${encodeURIComponent(each.name)}`}>
              {each.name}
            </Link>
          ),
        },
        {
          header: t.registries.state,
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
          header: t.registries.url,
          isWide: true,
          className: "mono wrap",
          cell: (each) => each.url,
        },
        { header: t.registries.jobs, className: "numeric", cell: (each) => each.jobCount ?? "–" },
        { header: t.registries.role, cell: (each) => t.roles[each.role] },
      ]}
    />
  );
}
