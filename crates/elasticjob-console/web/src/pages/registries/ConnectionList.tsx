import { Button } from "@mantine/core";
import type { QueryKey, UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useAction } from "../../api/action";
import { encodeSegment, request } from "../../api/client";
import { Card } from "../../components/Card";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { QueryList } from "../../components/QueryList";
import { RemoveButton } from "../../components/RowMenu";
import { EmptyState } from "../../components/states";
import { useText } from "../../i18n";
import { ConnectionTabs } from "./ConnectionTabs";

/** A list of connections from the configuration or added in the console; only added ones can be removed. */
export function ConnectionList<T extends { isAdded: boolean }>({
  tab,
  title,
  texts,
  query,
  nameOf,
  columns,
  width,
  invalidates,
  canAdd,
  isAddDisabled = false,
  addDialog,
}: {
  tab: "registries" | "histories";
  title: string;
  texts: {
    about: string;
    fixed: string;
    add: string;
    none: string;
    noneAbout: string;
    remove: (name: string) => string;
    removed: (name: string) => string;
    removeConsequences: string[];
  };
  query: UseQueryResult<T[]>;
  nameOf: (item: T) => string;
  columns: Column<T>[];
  width: number;
  /** Cache keys to refetch after a removal. */
  invalidates: (name: string) => QueryKey[];
  canAdd: boolean;
  isAddDisabled?: boolean;
  addDialog: (close: () => void) => ReactNode;
}) {
  const t = useText();
  const [isAdding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string | null>(null);
  const remove = useAction<string>({
    send: (name) => request("DELETE", `/${tab}/${encodeSegment(name)}`),
    successMessage: (_, name) => texts.removed(name),
    invalidates: removing ? invalidates(removing) : [],
  });
  const actions: Column<T> = {
    header: t.jobs.actions,
    isActions: true,
    width: 44,
    cell: (item) =>
      canAdd &&
      item.isAdded && (
        <RemoveButton
          label={texts.remove(nameOf(item))}
          onClick={() => setRemoving(nameOf(item))}
        />
      ),
  };
  return (
    <>
      <PageHeader title={title} about={canAdd ? texts.about : `${texts.about} ${texts.fixed}`}>
        {canAdd && (
          <Button
            leftSection={<Icon name="plus" />}
            disabled={isAddDisabled}
            onClick={() => setAdding(true)}
          >
            {texts.add}
          </Button>
        )}
      </PageHeader>
      <ConnectionTabs tab={tab}>
        <Card isFlush>
          <QueryList
            query={query}
            isEmpty={(found) => found.length === 0}
            empty={
              <EmptyState icon={tab === "registries" ? "registry" : "history"} title={texts.none}>
                {texts.noneAbout}
              </EmptyState>
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
          </QueryList>
        </Card>
      </ConnectionTabs>
      {isAdding && addDialog(() => setAdding(false))}
      {removing !== null && (
        <ConfirmDialog
          title={texts.remove(removing)}
          consequences={texts.removeConsequences}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removing, { onSuccess: () => setRemoving(null) })}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  );
}
