import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useRegistries } from "../../api/queries";
import type { Registry } from "../../api/types";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Listed } from "../../parts/Listed";
import { PageHead } from "../../parts/PageHead";
import { RemoveButton } from "../../parts/RowMenu";
import { Empty } from "../../parts/states";
import { AddRegistry } from "./AddRegistry";
import { PlaceTabs } from "./PlaceTabs";
import { RegistryState } from "./RegistryState";

export function RegistriesPage() {
  const t = useText();
  const session = useSession();
  const registries = useRegistries();
  const mayAdd = rules(session) && session.canAddRegistries;
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Registry | null>(null);
  const remove = useAct<string>({
    run: (name) => ask("DELETE", `/registries/${segment(name)}`),
    done: (_, name) => t.registries.removed(name),
    touches: [keys.registries],
  });
  return (
    <>
      <PageHead
        title={t.nav.registries}
        about={mayAdd ? t.registries.about : `${t.registries.about} ${t.registries.fixed}`}
      >
        {mayAdd && (
          <Button leftSection={<Icon name="plus" />} onClick={() => setAdding(true)}>
            {t.registries.add}
          </Button>
        )}
      </PageHead>
      <PlaceTabs tab="registries">
        <Card isFlush>
          <Listed
            asked={registries}
            isEmpty={(found) => found.length === 0}
            empty={
              <Empty icon="registry" title={t.registries.none}>
                {t.registries.noneAbout}
              </Empty>
            }
          >
            {(found) => (
              <DataTable
                label={t.nav.registries}
                width={640}
                rows={found}
                keyOf={(each) => each.name}
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
                  {
                    head: t.registries.jobs,
                    className: "numeric",
                    cell: (each) => each.jobCount ?? "–",
                  },
                  { head: t.registries.role, cell: (each) => t.roles[each.role] },
                  {
                    head: t.jobs.actions,
                    isActions: true,
                    width: 44,
                    cell: (each) =>
                      mayAdd &&
                      each.isAdded && (
                        <RemoveButton
                          label={t.registries.remove(each.name)}
                          onClick={() => setRemoved(each)}
                        />
                      ),
                  },
                ]}
              />
            )}
          </Listed>
        </Card>
      </PlaceTabs>
      {isAdding && <AddRegistry onClose={() => setAdding(false)} />}
      {removed && (
        <Confirm
          title={t.registries.remove(removed.name)}
          happens={t.registries.removeHappens}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removed.name, { onSuccess: () => setRemoved(null) })}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}
