import { Button } from "@mantine/core";
import type { QueryKey, UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { type Column, DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Listed } from "../../parts/Listed";
import { PageHead } from "../../parts/PageHead";
import { RemoveButton } from "../../parts/RowMenu";
import { Empty } from "../../parts/states";
import { PlaceTabs } from "./PlaceTabs";

/** Places the console looks at, named when it was started or added here; those that were added can be removed. */
export function Places<T extends { isAdded: boolean }>({
  tab,
  title,
  words,
  asked,
  nameOf,
  columns,
  width,
  touches,
  mayAdd,
  isFull = false,
  adding,
}: {
  tab: "registries" | "histories";
  title: string;
  words: {
    about: string;
    fixed: string;
    add: string;
    none: string;
    noneAbout: string;
    remove: (name: string) => string;
    removed: (name: string) => string;
    removeHappens: string[];
  };
  asked: UseQueryResult<T[]>;
  nameOf: (place: T) => string;
  columns: Column<T>[];
  width: number;
  /** What is looked at again once one is removed. */
  touches: (name: string) => QueryKey[];
  mayAdd: boolean;
  /** There is none that could be added. */
  isFull?: boolean;
  /** How one is added. */
  adding: (close: () => void) => ReactNode;
}) {
  const t = useText();
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<string | null>(null);
  const remove = useAct<string>({
    run: (name) => ask("DELETE", `/${tab}/${segment(name)}`),
    done: (_, name) => words.removed(name),
    touches: removed ? touches(removed) : [],
  });
  const actions: Column<T> = {
    head: t.jobs.actions,
    isActions: true,
    width: 44,
    cell: (place) =>
      mayAdd &&
      place.isAdded && (
        <RemoveButton
          label={words.remove(nameOf(place))}
          onClick={() => setRemoved(nameOf(place))}
        />
      ),
  };
  return (
    <>
      <PageHead title={title} about={mayAdd ? words.about : `${words.about} ${words.fixed}`}>
        {mayAdd && (
          <Button
            leftSection={<Icon name="plus" />}
            disabled={isFull}
            onClick={() => setAdding(true)}
          >
            {words.add}
          </Button>
        )}
      </PageHead>
      <PlaceTabs tab={tab}>
        <Card isFlush>
          <Listed
            asked={asked}
            isEmpty={(found) => found.length === 0}
            empty={
              <Empty icon={tab === "registries" ? "registry" : "history"} title={words.none}>
                {words.noneAbout}
              </Empty>
            }
          >
            {(found) => (
              <DataTable
                label={title}
                width={width}
                rows={found}
                keyOf={nameOf}
                columns={[...columns, actions]}
              />
            )}
          </Listed>
        </Card>
      </PlaceTabs>
      {isAdding && adding(() => setAdding(false))}
      {removed !== null && (
        <Confirm
          title={words.remove(removed)}
          happens={words.removeHappens}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removed, { onSuccess: () => setRemoved(null) })}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}
