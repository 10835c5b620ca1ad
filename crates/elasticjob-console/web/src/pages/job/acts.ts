import { useState } from "react";

import { useAct } from "../../api/act";
import { ask, query } from "../../api/client";
import { Intent } from "../../api/intent";
import { atJob, keys } from "../../api/queries";
import type { Cancelled, Switched, Triggered } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";

export interface TriggerAsked {
  shards?: number[];
  parameter?: string;
  /** The time it is to work for. */
  at?: string;
}

export interface CancelAsked {
  shards?: number[];
  /** Only if this run is still the one that runs. */
  run?: string;
}

/** Everything that can be done to a job. */
export function useJobActs(job: string) {
  const t = useText();
  const registry = useRegistry();
  const at = atJob(registry, job);
  const [intent] = useState(() => new Intent());
  const touches = [
    keys.job(registry, job),
    keys.shards(registry, job),
    keys.jobs(registry),
    keys.overview(registry),
  ];
  return {
    trigger: useAct<TriggerAsked, Triggered>({
      // Sent twice by accident, it still runs once.
      run: (asked) =>
        ask("POST", `${at}/trigger`, asked, { "Idempotency-Key": intent.keyOf(asked) }),
      done: (done) => t.job.triggered(job, done.instances.length, done.waiting.length),
      touches,
      after: () => intent.done(),
    }),
    cancel: useAct<CancelAsked, Cancelled>({
      run: (asked) => ask("POST", `${at}/cancel`, asked),
      done: ({ asked, notCancellable }) => {
        const told = Object.values(asked).flat().length;
        return t.job.cancelled(job, told, Object.keys(notCancellable).length);
      },
      touches,
    }),
    enable: useAct<void, Switched>({
      run: () => ask("POST", `${at}/enable`),
      done: () => t.job.enabled(job),
      touches,
    }),
    disable: useAct<void, Switched>({
      run: () => ask("POST", `${at}/disable`),
      done: () => t.job.disabled(job),
      touches,
    }),
    shutdown: useAct<void, { instances: string[] }>({
      run: () => ask("POST", `${at}/shutdown`),
      done: ({ instances }) => t.job.shutDown(job, instances.length),
      touches,
    }),
    remove: useAct<{ force: boolean }, { nodes: number; instances: unknown }>({
      run: ({ force }) => ask("DELETE", `${at}${query({ force: force || undefined })}`),
      done: () => t.job.removed(job),
      touches: [keys.jobs(registry), keys.overview(registry)],
    }),
    shard: useAct<{ item: number; enable: boolean }, { isChanged: boolean }>({
      run: ({ item, enable }) =>
        ask("POST", `${at}/shards/${item}/${enable ? "enable" : "disable"}`),
      done: (_, { item, enable }) =>
        enable ? t.job.shardEnabled(item) : t.job.shardDisabled(item),
      touches,
    }),
  };
}
