import { useState } from "react";

import { useAction } from "../../api/action";
import { queryString, request } from "../../api/client";
import { IdempotencyKey } from "../../api/idempotency";
import { jobPath, queryKeys, triggerPath } from "../../api/queries";
import type {
  CancelRequest,
  CancelResponse,
  SwitchResponse,
  TriggerRequest,
  TriggerResponse,
  WithdrawResponse,
} from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { useText } from "../../i18n";

export function useJobActions(job: string) {
  const t = useText();
  const registry = useRegistry();
  const to = useRegistryLink();
  const path = jobPath(registry, job);
  const [idempotencyKey] = useState(() => new IdempotencyKey());
  const invalidates = [
    queryKeys.job(registry, job),
    queryKeys.shards(registry, job),
    queryKeys.triggers(registry, job),
    queryKeys.jobs(registry),
    queryKeys.overview(registry),
  ];
  return {
    trigger: useAction<TriggerRequest, TriggerResponse>({
      // A trigger that is sent twice runs once.
      send: (body) =>
        request("POST", `${path}/trigger`, body, {
          "Idempotency-Key": idempotencyKey.keyFor(body),
        }),
      successMessage: (done, { shards }) =>
        shards
          ? t.job.triggeredShards(job, shards)
          : t.job.triggered(job, done.instances.length, done.alreadyPending.length),
      successLink: ({ runId }) => ({ to: to("runs", runId), label: t.job.openRun }),
      invalidates,
      onSuccess: () => idempotencyKey.clear(),
    }),
    cancel: useAction<CancelRequest, CancelResponse>({
      send: (body) => request("POST", `${path}/cancel`, body),
      successMessage: ({ requested, withdrawn, notCancellable }) => {
        const cancelled = Object.values(requested).flat().length + withdrawn.length;
        return t.job.cancelled(job, cancelled, Object.keys(notCancellable).length);
      },
      invalidates,
    }),
    withdraw: useAction<{ runId: string }, WithdrawResponse>({
      send: ({ runId }) => request("POST", `${triggerPath(registry, job, runId)}/withdraw`),
      successMessage: ({ withdrawn, started }) =>
        t.triggers.withdrawn(job, withdrawn.length, started.length),
      invalidates,
    }),
    enable: useAction<void, SwitchResponse>({
      send: () => request("POST", `${path}/enable`),
      successMessage: () => t.job.enabled(job),
      invalidates,
    }),
    disable: useAction<void, SwitchResponse>({
      send: () => request("POST", `${path}/disable`),
      successMessage: () => t.job.disabled(job),
      invalidates,
    }),
    shutdown: useAction<void, { instances: string[] }>({
      send: () => request("POST", `${path}/shutdown`),
      successMessage: ({ instances }) => t.job.shutDown(job, instances.length),
      invalidates,
    }),
    remove: useAction<{ force: boolean }, { nodes: number; instances: unknown }>({
      send: ({ force }) =>
        request("DELETE", `${path}${queryString({ force: force || undefined })}`),
      successMessage: () => t.job.removed(job),
      invalidates: [queryKeys.jobs(registry), queryKeys.overview(registry)],
    }),
    shard: useAction<{ item: number; enable: boolean }, { isChanged: boolean }>({
      send: ({ item, enable }) =>
        request("POST", `${path}/shards/${item}/${enable ? "enable" : "disable"}`),
      successMessage: (_, { item, enable }) =>
        enable ? t.job.shardEnabled(item) : t.job.shardDisabled(item),
      invalidates,
    }),
  };
}
