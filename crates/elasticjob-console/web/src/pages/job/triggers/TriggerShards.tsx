import { useTrigger } from "../../../api/queries";
import type { TriggerShard } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { type Column, DataTable } from "../../../components/DataTable";
import { ErrorState, Loading } from "../../../components/states";
import { Timestamp } from "../../../components/Timestamp";
import { useText } from "../../../i18n";

/** What became of each shard of a trigger. */
export function TriggerShards({ job, runId }: { job: string; runId: string }) {
  const t = useText();
  const trigger = useTrigger(useRegistry(), job, runId);
  if (trigger.isPending) return <Loading rows={2} />;
  if (trigger.isError && !trigger.data) {
    return <ErrorState error={trigger.error} onRetry={() => void trigger.refetch()} />;
  }
  const columns: Column<TriggerShard>[] = [
    { header: t.shards.item, width: 80, cell: ({ item }) => item },
    {
      header: t.triggers.state,
      isTitle: true,
      cell: ({ state, reason }) => {
        const text = t.triggers.states[state] ?? state;
        return reason ? `${text}: ${t.triggers.reasons[reason] ?? reason}` : text;
      },
    },
    { header: t.triggers.since, cell: ({ since }) => <Timestamp at={since} /> },
    { header: t.triggers.instance, className: "wrap", cell: ({ instance }) => instance ?? "–" },
  ];
  return (
    <DataTable
      label={t.triggers.shards}
      columns={columns}
      rows={trigger.data.shards}
      keyOf={({ item }) => item}
      attributes={({ item }) => ({ "data-trigger-shard": item })}
    />
  );
}
