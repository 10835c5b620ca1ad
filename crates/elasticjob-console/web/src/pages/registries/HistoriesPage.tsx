import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { HISTORIES, useHistories, type History } from "../../api/histories";
import { keys, useRegistries } from "../../api/queries";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Listed } from "../../parts/Listed";
import { PageHead } from "../../parts/PageHead";
import { RemoveButton } from "../../parts/RowMenu";
import { Empty } from "../../parts/states";
import { AddHistory } from "./AddHistory";
import { PlaceTabs } from "./PlaceTabs";

/** Where what ran is kept, for each registry. */
export function HistoriesPage() {
  const t = useText();
  const session = useSession();
  const histories = useHistories();
  const registries = useRegistries();
  const mayAdd = rules(session) && session.canAddHistories;
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<History | null>(null);
  const remove = useAct<string>({
    run: (registry) => ask("DELETE", `/histories/${segment(registry)}`),
    done: (_, registry) => t.histories.removed(registry),
    touches: [HISTORIES, ...(removed ? [keys.of(removed.registry)] : [])],
  });
  const known = new Set(histories.data?.map(({ registry }) => registry));
  const without = registries.data?.map(({ name }) => name).filter((name) => !known.has(name)) ?? [];
  return (
    <>
      <PageHead
        title={t.histories.title}
        about={mayAdd ? t.histories.about : `${t.histories.about} ${t.histories.fixed}`}
      >
        {mayAdd && (
          <Button
            leftSection={<Icon name="plus" />}
            disabled={without.length === 0}
            onClick={() => setAdding(true)}
          >
            {t.histories.add}
          </Button>
        )}
      </PageHead>
      <PlaceTabs tab="histories">
        <Card isFlush>
          <Listed
            asked={histories}
            isEmpty={(found) => found.length === 0}
            empty={
              <Empty icon="history" title={t.histories.none}>
                {t.histories.noneAbout}
              </Empty>
            }
          >
            {(found) => (
              <DataTable
                label={t.histories.title}
                width={560}
                rows={found}
                keyOf={(each) => each.registry}
                columns={[
                  {
                    head: t.histories.registry,
                    cell: (each) => (
                      <Link className="name" to={`/r/${encodeURIComponent(each.registry)}/history`}>
                        {each.registry}
                      </Link>
                    ),
                  },
                  { head: t.registries.state, cell: (each) => <HistoryState history={each} /> },
                  {
                    head: t.registries.url,
                    isWide: true,
                    className: "mono wrap",
                    cell: (each) => each.url,
                  },
                  {
                    head: t.histories.from,
                    cell: (each) => (each.isAdded ? t.histories.addedHere : t.histories.configured),
                  },
                  {
                    head: t.jobs.actions,
                    isActions: true,
                    width: 44,
                    cell: (each) =>
                      mayAdd &&
                      each.isAdded && (
                        <RemoveButton
                          label={t.histories.remove(each.registry)}
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
      {isAdding && <AddHistory without={without} onClose={() => setAdding(false)} />}
      {removed && (
        <Confirm
          title={t.histories.remove(removed.registry)}
          happens={t.histories.removeHappens}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removed.registry, { onSuccess: () => setRemoved(null) })}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}

function HistoryState({ history }: { history: History }) {
  const t = useText();
  if (history.problem) {
    return (
      <>
        <Badge tone="bad">{t.registries.states.down}</Badge>
        <Text size="xs" c="var(--bad)" className="wrap">
          {history.problem}
        </Text>
      </>
    );
  }
  return history.isOpen ? (
    <Badge tone="ok">{t.registries.states.connected}</Badge>
  ) : (
    <Badge tone="off">{t.registries.states.idle}</Badge>
  );
}
